#include "json_text.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>

#include "sandboxes/strings.hpp"

namespace sandboxes::internal {

namespace {

/// Blocks that a long string is read by.
constexpr std::size_t kStride = 4 * kBlock;

constexpr std::array<bool, 256> make_special() {
  std::array<bool, 256> special{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    special[byte] = byte < 0x20 || byte > 0x7F || byte == '"' || byte == '\\';
  }
  return special;
}

/// The same for one byte.
constexpr auto kSpecial = make_special();

/// The first byte from `at` on that is no plain string character, or `size`.
std::size_t plain_end(const char* data, std::size_t at, std::size_t size) {
  // What does not end within two blocks tends to be much longer.
  if (at + kBlock <= size) {
    const std::size_t plain = bytes_before(special_bytes(data + at));
    at += plain;
    if (plain < kBlock) return at;
  }
  while (at + kStride <= size) {
    const char* next = data + at;
    const Block marks = special_bytes(next) | special_bytes(next + kBlock) |
                        special_bytes(next + 2 * kBlock) | special_bytes(next + 3 * kBlock);
    if (bytes_before(marks) < kBlock) break;
    at += kStride;
  }
  while (at + kBlock <= size) {
    const std::size_t plain = bytes_before(special_bytes(data + at));
    at += plain;
    if (plain < kBlock) return at;
  }
  while (at < size && !kSpecial[static_cast<unsigned char>(data[at])]) ++at;
  return at;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto push = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | code >> 6);
    push(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12);
    push(0x80 | (code >> 6 & 0x3F));
    push(0x80 | (code & 0x3F));
  } else {
    push(0xF0 | code >> 18);
    push(0x80 | (code >> 12 & 0x3F));
    push(0x80 | (code >> 6 & 0x3F));
    push(0x80 | (code & 0x3F));
  }
}

std::uint32_t four_hex_digits(std::string_view text) {
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) value = value << 4 | static_cast<std::uint32_t>(hex_value(c));
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

void JsonText::skip_more_space() {
  while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
}

bool JsonText::escape() {
  ++escapes_;
  ++at_;
  if (at_ >= text_.size()) return false;
  const char c = text_[at_++];
  if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ >= text_.size() || hex_value(text_[at_]) < 0) return false;
  }
  return true;
}

bool JsonText::non_ascii() {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text_.data());
  const auto continues = [&](std::size_t i) {
    return at_ + i < text_.size() && (bytes[at_ + i] & 0xC0) == 0x80;
  };
  // A control character is none of these either.
  if (bytes[at_] < 0x80) return false;
  while (at_ < text_.size() && bytes[at_] >= 0x80) {
    const unsigned lead = bytes[at_];
    if (lead < 0xC2 || lead > 0xF4 || !continues(1)) return false;
    const unsigned second = bytes[at_ + 1];
    if (lead < 0xE0) {
      at_ += 2;
    } else if (lead < 0xF0) {
      // Overlong forms and surrogates differ in the second byte.
      if (!continues(2) || (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return false;
      at_ += 3;
    } else {
      if (!continues(2) || !continues(3) || (lead == 0xF0 && second < 0x90) ||
          (lead == 0xF4 && second > 0x8F)) {
        return false;
      }
      at_ += 4;
    }
  }
  return true;
}

bool JsonText::long_string() {
  const char* data = text_.data();
  const std::size_t size = text_.size();
  std::size_t at = at_ + 1;
  for (;;) {
    at = plain_end(data, at, size);
    at_ = at;
    if (at == size) return false;
    if (data[at] == '"') {
      ++at_;
      return true;
    }
    if (data[at] == '\\' ? !escape() : !non_ascii()) return false;
    at = at_;
  }
}

bool JsonText::digits() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ > begin;
}

bool JsonText::number() {
  if (next_is('-')) ++at_;
  if (next_is('0')) {
    ++at_;
  } else if (!digits()) {
    return false;
  }
  if (next_is('.')) {
    ++at_;
    if (!digits()) return false;
  }
  if (next_is('e') || next_is('E')) {
    ++at_;
    if (next_is('+') || next_is('-')) ++at_;
    if (!digits()) return false;
  }
  return true;
}

bool JsonText::word(std::string_view expected) {
  if (text_.substr(at_, expected.size()) != expected) return false;
  at_ += expected.size();
  return true;
}

bool JsonText::scalar() {
  switch (text_[at_]) {
    case '"':
      return string();
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      return number();
  }
}

bool JsonText::key() {
  skip_space();
  if (!string()) return false;
  skip_space();
  if (!next_is(':')) return false;
  ++at_;
  return true;
}

bool JsonText::value(std::size_t deepest) {
  skip_space();
  if (at_ >= text_.size()) return false;
  if (next_is('{') || next_is('[')) return nested(std::min(deepest, kMaxTextNesting));
  if (!scalar()) return false;
  skip_space();
  return true;
}

bool JsonText::nested(std::size_t deepest) {
  std::bitset<kMaxTextNesting> in_object;
  std::size_t depth = 0;
  for (;;) {
    skip_space();
    if (at_ >= text_.size()) return false;
    const char opening = text_[at_];
    if (opening == '{' || opening == '[') {
      if (depth == deepest) return false;
      in_object[depth++] = opening == '{';
      ++at_;
      skip_space();
      if (!next_is(opening == '{' ? '}' : ']')) {
        if (opening == '{' && !key()) return false;
        continue;
      }
      ++at_;
      --depth;
    } else if (!scalar()) {
      return false;
    }
    // A value is complete: close what ends here, or go on to the next element.
    for (;;) {
      skip_space();
      if (depth == 0) return true;
      const bool object = in_object[depth - 1];
      if (next_is(',')) {
        ++at_;
        if (object && !key()) return false;
        break;
      }
      if (!next_is(object ? '}' : ']')) return false;
      ++at_;
      --depth;
    }
  }
}

std::optional<std::size_t> json_problem(std::string_view text) {
  JsonText reader(text);
  if (!reader.value() || reader.at() != text.size()) return reader.at();
  return std::nullopt;
}

std::optional<std::vector<JsonMember>> read_members(std::string_view text, Range range) {
  JsonText reader(text.substr(0, range.end));
  reader.move_to(range.begin);
  reader.skip_space();
  if (!reader.next_is('{')) return std::nullopt;
  std::vector<JsonMember> members;
  reader.move_to(reader.at() + 1);
  reader.skip_space();
  bool closed = reader.next_is('}');
  while (!closed) {
    JsonMember member;
    reader.skip_space();
    member.key_range.begin = reader.at();
    if (!reader.string()) return std::nullopt;
    member.key_range.end = reader.at();
    member.key =
        unescape_json(text.substr(member.key_range.begin + 1, reader.at() - member.key_range.begin - 2));
    reader.skip_space();
    if (!reader.next_is(':')) return std::nullopt;
    reader.move_to(reader.at() + 1);
    reader.skip_space();
    member.value.begin = reader.at();
    if (!reader.value()) return std::nullopt;
    member.value.end = reader.at();
    while (member.value.end > member.value.begin && is_json_space(text[member.value.end - 1]))
      --member.value.end;
    members.push_back(std::move(member));
    closed = reader.next_is('}');
    if (!closed && !reader.next_is(',')) return std::nullopt;
    if (!closed) reader.move_to(reader.at() + 1);
  }
  reader.move_to(reader.at() + 1);
  reader.skip_space();
  return reader.at() == range.end ? std::optional(std::move(members)) : std::nullopt;
}

std::string unescape_json(std::string_view inner) {
  std::string out;
  out.reserve(inner.size());
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      out += inner[i];
      continue;
    }
    const char c = inner[++i];
    if (c != 'u') {
      out += simple_escape(c);
      continue;
    }
    std::uint32_t code = four_hex_digits(inner.substr(i + 1));
    i += 4;
    const bool high = code >= 0xD800 && code < 0xDC00;
    if (high && inner.substr(i + 1, 2) == "\\u") {
      const std::uint32_t low = four_hex_digits(inner.substr(i + 3));
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
    }
    append_utf8(out, code);
  }
  return out;
}

std::string escape_json(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace sandboxes::internal
