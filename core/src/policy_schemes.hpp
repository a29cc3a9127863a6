#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sandboxes/strings.hpp"

namespace sandboxes::internal {

// http covers ws, and https covers wss: a WebSocket begins as a request. The reverse does not hold.
inline constexpr std::uint8_t kHttp = 1;
inline constexpr std::uint8_t kWs = 2;
inline constexpr std::uint8_t kHttps = 4;
inline constexpr std::uint8_t kWss = 8;
inline constexpr std::uint8_t kAllSchemes = 15;

[[nodiscard]] constexpr std::uint8_t scheme_bits(std::string_view rule_scheme) {
  if (rule_scheme == "http") return kHttp | kWs;
  if (rule_scheme == "ws") return kWs;
  if (rule_scheme == "https") return kHttps | kWss;
  if (rule_scheme == "wss") return kWss;
  return 0;
}

[[nodiscard]] inline std::string to_upper_ascii(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace sandboxes::internal
