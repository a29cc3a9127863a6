#include "sandboxes/strings.hpp"

#include <array>
#include <cmath>

namespace sandboxes {

namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";
constexpr std::string_view kBase64Alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kQuotedBytes = 120;

std::string two_hex_digits(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return {kHexDigits[byte >> 4], kHexDigits[byte & 15]};
}

constexpr std::uint8_t kNoBase64Digit = 64;

constexpr std::array<std::uint8_t, 256> make_base64_values() {
  std::array<std::uint8_t, 256> values{};
  for (auto& value : values) value = kNoBase64Digit;
  for (std::size_t i = 0; i < kBase64Alphabet.size(); ++i) {
    values[static_cast<unsigned char>(kBase64Alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr auto kBase64Values = make_base64_values();

/// Length of the UTF-8 sequence at `position`, or 0 when it is not one.
std::size_t utf8_sequence_length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return position + i < text.size() ? static_cast<unsigned char>(text[position + i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

std::uint32_t code_point(std::string_view text, std::size_t position, std::size_t length) {
  auto value = static_cast<std::uint32_t>(static_cast<unsigned char>(text[position]));
  if (length == 1) return value;
  value &= 0xFFU >> (length + 1);
  for (std::size_t i = 1; i < length; ++i) {
    value = (value << 6) | (static_cast<unsigned char>(text[position + i]) & 0x3FU);
  }
  return value;
}

/// What a reader sees as what it is: no control, and nothing that hides, joins or turns the text around it.
bool is_shown(std::uint32_t value) {
  if (value < 0x80) return value >= ' ' && value != 0x7F;
  const bool invisible = value < 0xA1 || value == 0xAD || value == 0x061C || value == 0x180E ||
                         (value >= 0x2000 && value <= 0x200F) || (value >= 0x2028 && value <= 0x202F) ||
                         (value >= 0x205F && value <= 0x206F) || value == 0x3000 ||
                         (value >= 0xE000 && value <= 0xF8FF) || (value >= 0xFE00 && value <= 0xFE0F) ||
                         value == 0xFEFF || (value >= 0xFFF0 && value <= 0xFFFF) || value >= 0xE0000;
  return !invisible;
}

std::string exponent_text(double number) {
  double digits = number < 0 ? -number : number;
  int exponent = 0;
  while (digits >= 10) {
    digits /= 10;
    ++exponent;
  }
  std::int64_t hundredths = std::llround(digits * 100);
  if (hundredths == 1000) {
    hundredths = 100;
    ++exponent;
  }
  std::string text = (number < 0 ? "-" : "") + std::to_string(hundredths / 100);
  if (hundredths % 100 != 0) text += "." + std::to_string(100 + hundredths % 100).substr(1);
  while (hundredths % 100 != 0 && text.back() == '0') text.pop_back();
  return text + "e" + std::to_string(exponent);
}

}  // namespace

CodePoint read_code_point(std::string_view text, std::size_t position) {
  const std::size_t length = utf8_sequence_length(text, position);
  return length == 0 ? CodePoint{} : CodePoint{code_point(text, position, length), length};
}

std::string to_lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = to_lower(c);
  return lower;
}

bool equals_ignoring_case(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (to_lower(left[i]) != to_lower(right[i])) return false;
  }
  return true;
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string join(const std::string_view* parts, std::size_t count, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  std::size_t position = 0;
  while (position < text.size()) {
    const CodePoint point = read_code_point(text, position);
    const std::size_t length = point.length == 0 ? 1 : point.length;
    if (position + length > kQuotedBytes) break;
    if (text[position] == '"' || text[position] == '\\') out += '\\';
    if (point.length > 0 && is_shown(point.value)) {
      out += text.substr(position, length);
    } else {
      for (const char c : text.substr(position, length)) out += "\\x" + two_hex_digits(c);
    }
    position += length;
  }
  out += '"';
  if (position < text.size()) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

std::string character_name(std::string_view text, std::size_t position) {
  if (position >= text.size()) return "the end";
  const char c = text[position];
  if (c > ' ' && c < 0x7F) return std::string("'") + c + "'";
  const std::size_t length = utf8_sequence_length(text, position);
  if (length == 0) return "byte 0x" + two_hex_digits(c);
  const std::uint32_t value = code_point(text, position, length);
  std::string name = "U+";
  for (int shift = value > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4)
    name += kHexDigits[(value >> shift) & 15U];
  return name;
}

std::string number_text(double number) {
  constexpr double kLargest = 9e15;
  if (number != number) return "NaN";
  if (number - number != 0) return number > 0 ? "Infinity" : "-Infinity";
  if (!(number > -kLargest && number < kLargest)) return exponent_text(number);
  const auto thousandths = static_cast<std::int64_t>((number < 0 ? -number : number) * 1000);
  std::string text = (number < 0 ? "-" : "") + std::to_string(thousandths / 1000);
  if (thousandths % 1000 == 0) return text;
  const std::string decimals = std::to_string(1000 + thousandths % 1000);
  text += "." + decimals.substr(1);
  while (text.back() == '0') text.pop_back();
  return text;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t length = utf8_sequence_length(text, position);
    if (length == 0) return position;
    position += length;
  }
  return std::nullopt;
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = (byte(i) << 16) | (byte(i + 1) << 8) | byte(i + 2);
    out += kBase64Alphabet[(group >> 18) & 63U];
    out += kBase64Alphabet[(group >> 12) & 63U];
    out += i + 1 < bytes.size() ? kBase64Alphabet[(group >> 6) & 63U] : '=';
    out += i + 2 < bytes.size() ? kBase64Alphabet[group & 63U] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string out;
  out.reserve(text.size() / 4 * 3);
  unsigned group = 0;
  unsigned bits = 0;
  for (const char c : digits) {
    const unsigned value = kBase64Values[static_cast<unsigned char>(c)];
    if (value == kNoBase64Digit) return std::nullopt;
    group = (group << 6) | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>((group >> bits) & 0xFFU);
    }
  }
  // Bits that no byte takes must be zero: otherwise two texts would name the same bytes.
  if ((group & ((1U << bits) - 1U)) != 0) return std::nullopt;
  return out;
}

}  // namespace sandboxes
