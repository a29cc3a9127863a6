#include "sandboxes/http.hpp"

#include <array>

#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";
constexpr std::string_view kUriMarks = "-_.!~*'()";
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

constexpr std::array<std::string_view, 9> kHopByHop = {"connection",
                                                       "keep-alive",
                                                       "proxy-authenticate",
                                                       "proxy-authorization",
                                                       "proxy-connection",
                                                       "te",
                                                       "trailer",
                                                       "transfer-encoding",
                                                       "upgrade"};

}  // namespace

bool is_token(std::string_view text) {
  for (const char c : text) {
    if (!is_alnum(c) && kTokenMarks.find(c) == std::string_view::npos) return false;
  }
  return !text.empty();
}

std::optional<std::string_view> find_header(const HeaderList& headers, std::string_view lower_name) {
  for (const auto& [name, value] : headers) {
    if (equals_ignoring_case(name, lower_name)) return value;
  }
  return std::nullopt;
}

std::size_t count_headers(const HeaderList& headers, std::string_view lower_name) {
  std::size_t count = 0;
  for (const auto& header : headers) count += equals_ignoring_case(header.first, lower_name) ? 1 : 0;
  return count;
}

std::vector<std::string_view> split_list(std::string_view value) {
  std::vector<std::string_view> parts;
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view part = trim(value.substr(0, comma));
    if (!part.empty()) parts.push_back(part);
    if (comma == std::string_view::npos) break;
    value.remove_prefix(comma + 1);
  }
  return parts;
}

bool is_hop_by_hop(std::string_view lower_name) {
  for (const auto name : kHopByHop) {
    if (name == lower_name) return true;
  }
  return false;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
    } else {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::string encode_uri_component(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_alnum(c) || kUriMarks.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

}  // namespace sandboxes
