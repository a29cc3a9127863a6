#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

/// `2026-01-02T03:04:05.678Z` of now, or of the given time.
std::string iso_timestamp();
std::string iso_timestamp(std::int64_t seconds, long nanoseconds);

/// True when the bytes are UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view bytes);

/// Turns bytes that arrive in pieces into UTF-8 text: a sequence cut by a piece's end waits for the next one,
/// bytes that can be no text become U+FFFD.
class Utf8Decoder {
 public:
  std::string feed(std::string_view bytes);
  /// What was still waiting, as U+FFFD.
  std::string finish();

 private:
  std::string pending_;
};

/// The whole of `bytes` as UTF-8 text.
std::string to_utf8(std::string bytes);

/// Appends a JSON string literal. The text must be UTF-8; with `ascii` everything above 0x7f is escaped.
void append_json_string(std::string& out, std::string_view text);

std::string base64_encode(std::string_view bytes);
/// Appends the encoding of `bytes`.
void append_base64(std::string& out, std::string_view bytes);
/// Standard alphabet, padding optional, nothing else: no blanks, no URL alphabet.
std::optional<std::string> base64_decode(std::string_view text);

std::optional<std::string> percent_decode(std::string_view text);
std::map<std::string, std::string> parse_query(std::string_view query);

/// One shell word that stands for `text` literally.
std::string shell_quote(std::string_view text);

/// `prefix` and 16 random hexadecimal digits.
std::string random_id(std::string_view prefix);

/// Shell pattern as in fnmatch, where `*` does not cross a slash and `**` does.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace sandboxd::agent
