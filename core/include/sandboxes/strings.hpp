#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxes {

// ASCII only and locale-free: what <cctype> answers depends on the environment.
[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
[[nodiscard]] constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
[[nodiscard]] constexpr bool is_alpha(char c) {
  return is_lower(c) || is_upper(c);
}
[[nodiscard]] constexpr bool is_alnum(char c) {
  return is_alpha(c) || is_digit(c);
}
[[nodiscard]] constexpr bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
[[nodiscard]] constexpr char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}
/// Value of a hexadecimal digit, or -1.
[[nodiscard]] constexpr int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

[[nodiscard]] std::string to_lower_ascii(std::string_view text);
[[nodiscard]] bool equals_ignoring_case(std::string_view left, std::string_view right);
/// Without the spaces and tabs at both ends (HTTP's optional whitespace).
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::string join(const std::string_view* parts, std::size_t count, std::string_view separator);

/// `"text"` for messages: controls and non-ASCII bytes as \xNN, cut after 120 bytes, so that no message can
/// carry a line break or an unreadable byte into a log.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// One character for messages: `'?'`, `U+0009`, `byte 0xFF`.
[[nodiscard]] std::string character_name(std::string_view text, std::size_t position);

/// A number for messages, with at most three decimals. `std::to_string` would bring printf into the wasm.
[[nodiscard]] std::string number_text(double number);

/// One character of a UTF-8 text; a length of 0 when the bytes are none.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;
};
[[nodiscard]] CodePoint read_code_point(std::string_view text, std::size_t position);

/// Position of the first byte that is not valid UTF-8 (overlong forms and surrogates count as invalid).
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// Standard base64 (RFC 4648), with padding. Decoding wants exactly that and gives nothing otherwise.
[[nodiscard]] std::string base64_encode(std::string_view bytes);
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace sandboxes
