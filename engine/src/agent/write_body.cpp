#include "sandboxd/agent/write_body.hpp"

#include <cstdint>
#include <cstring>
#include <optional>

namespace sandboxd::agent {
namespace {

/// Reads one flat JSON object in place. Strings are unescaped where they lie, since they only get shorter.
class FlatReader {
 public:
  explicit FlatReader(std::string& text) : text_(text.data()), size_(text.size()) {}

  bool take(char expected) {
    skip_blanks();
    if (at_ >= size_ || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    skip_blanks();
    return at_ == size_;
  }
  bool next_is(char expected) {
    skip_blanks();
    return at_ < size_ && text_[at_] == expected;
  }

  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    const std::size_t start = at_;
    std::size_t to = at_;
    while (at_ < size_) {
      const std::size_t run = plain_run();
      if (to != at_) std::memmove(text_ + to, text_ + at_, run);
      to += run;
      at_ += run;
      if (at_ >= size_) return std::nullopt;
      const char stop = text_[at_++];
      if (stop == '"') return std::string_view(text_ + start, to - start);
      if (stop != '\\' || !unescape(to)) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Skips a number, a literal, or any nested value by counting brackets outside strings.
  bool skip_value() {
    skip_blanks();
    std::size_t depth = 0;
    while (at_ < size_) {
      const char next = text_[at_];
      if (next == '"') {
        if (!string()) return false;
      } else if (next == '{' || next == '[') {
        ++depth;
        ++at_;
      } else if (next == '}' || next == ']') {
        if (depth == 0) return true;
        --depth;
        ++at_;
      } else if (next == ',' && depth == 0) {
        return true;
      } else {
        ++at_;
      }
    }
    return false;
  }

 private:
  void skip_blanks() {
    while (at_ < size_ &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  /// Bytes up to the next quote, backslash or control character.
  std::size_t plain_run() const {
    constexpr std::uint64_t kOnes = 0x0101010101010101U;
    constexpr std::uint64_t kHighs = 0x8080808080808080U;
    std::size_t end = at_;
    for (; end + 8 <= size_; end += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text_ + end, sizeof word);
      const std::uint64_t quote = word ^ (kOnes * '"');
      const std::uint64_t slash = word ^ (kOnes * '\\');
      const std::uint64_t stops =
          ((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) | ((word - kOnes * 0x20U) & ~word);
      if ((stops & kHighs) != 0) break;
    }
    while (end < size_ && text_[end] != '"' && text_[end] != '\\' &&
           static_cast<unsigned char>(text_[end]) >= 0x20) {
      ++end;
    }
    return end - at_;
  }

  std::optional<unsigned> hex4() {
    if (at_ + 4 > size_) return std::nullopt;
    unsigned value = 0;
    for (int index = 0; index < 4; ++index) {
      const char digit = text_[at_++];
      const unsigned nibble = digit >= '0' && digit <= '9'   ? static_cast<unsigned>(digit - '0')
                              : digit >= 'a' && digit <= 'f' ? static_cast<unsigned>(digit - 'a') + 10
                              : digit >= 'A' && digit <= 'F' ? static_cast<unsigned>(digit - 'A') + 10
                                                             : 16U;
      if (nibble > 15) return std::nullopt;
      value = value * 16 + nibble;
    }
    return value;
  }

  void put(std::size_t& to, unsigned byte) { text_[to++] = static_cast<char>(byte); }

  void put_code_point(std::size_t& to, unsigned point) {
    if (point < 0x80) {
      put(to, point);
    } else if (point < 0x800) {
      put(to, 0xC0U | (point >> 6U));
      put(to, 0x80U | (point & 63U));
    } else if (point < 0x10000) {
      put(to, 0xE0U | (point >> 12U));
      put(to, 0x80U | ((point >> 6U) & 63U));
      put(to, 0x80U | (point & 63U));
    } else {
      put(to, 0xF0U | (point >> 18U));
      put(to, 0x80U | ((point >> 12U) & 63U));
      put(to, 0x80U | ((point >> 6U) & 63U));
      put(to, 0x80U | (point & 63U));
    }
  }

  bool unescape_unicode(std::size_t& to) {
    auto point = hex4();
    if (!point) return false;
    if (*point >= 0xD800 && *point < 0xDC00 && at_ + 6 <= size_ && text_[at_] == '\\' &&
        text_[at_ + 1] == 'u') {
      const std::size_t mark = at_;
      at_ += 2;
      const auto low = hex4();
      if (!low) return false;
      if (*low >= 0xDC00 && *low < 0xE000) {
        put_code_point(to, 0x10000U + ((*point - 0xD800U) << 10U) + (*low - 0xDC00U));
        return true;
      }
      at_ = mark;
    }
    // A surrogate on its own is no character.
    put_code_point(to, *point >= 0xD800 && *point < 0xE000 ? 0xFFFDU : *point);
    return true;
  }

  bool unescape(std::size_t& to) {
    if (at_ >= size_) return false;
    switch (text_[at_++]) {
      case '"':
        put(to, '"');
        return true;
      case '\\':
        put(to, '\\');
        return true;
      case '/':
        put(to, '/');
        return true;
      case 'b':
        put(to, '\b');
        return true;
      case 'f':
        put(to, '\f');
        return true;
      case 'n':
        put(to, '\n');
        return true;
      case 'r':
        put(to, '\r');
        return true;
      case 't':
        put(to, '\t');
        return true;
      case 'u':
        return unescape_unicode(to);
      default:
        return false;
    }
  }

  char* text_;
  std::size_t size_;
  std::size_t at_ = 0;
};

bool read_member(FlatReader& reader, WriteBody& out) {
  const auto key = reader.string();
  if (!key || !reader.take(':')) return false;
  if (!reader.next_is('"')) return reader.skip_value();
  // The key's bytes stay where they are while the value behind it is read.
  const auto value = reader.string();
  if (!value) return false;
  if (*key == "content") {
    out.content = *value;
    out.has_content = true;
  }
  if (*key == "path") out.path = std::string(*value);
  if (*key == "sessionId") out.session_id = std::string(*value);
  if (*key == "encoding") out.encoding = std::string(*value);
  if (*key == "permissions") out.permissions = std::string(*value);
  return true;
}

}  // namespace

Result<WriteBody> parse_write_body(std::string& body) {
  const auto bad = [] { return fail(invalid("body", "The request body must be a JSON object")); };
  WriteBody out;
  FlatReader reader(body);
  if (!reader.take('{')) return bad();
  if (!reader.next_is('}')) {
    do {
      if (!read_member(reader, out)) return bad();
    } while (reader.take(','));
  }
  if (!reader.take('}') || !reader.at_end()) return bad();
  return out;
}

}  // namespace sandboxd::agent
