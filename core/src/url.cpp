#include "sandboxes/url.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sandboxes/http.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr std::size_t kMaxHostBytes = 253;
constexpr std::string_view kForbiddenInHost = " #/:<>?@[\\]^|%\"`{}";

constexpr std::array<bool, 128> make_host_characters() {
  std::array<bool, 128> allowed{};
  for (std::size_t i = 0x21; i < 0x7F; ++i)
    allowed[i] = kForbiddenInHost.find(static_cast<char>(i)) == std::string_view::npos;
  return allowed;
}

constexpr auto kHostCharacters = make_host_characters();
constexpr std::string_view kUnreservedMarks = "-._~";
constexpr std::string_view kKeptInPath = "-._~!$&'()*+,;=:@/|^[]";
constexpr std::string_view kPercentDigits = "0123456789ABCDEF";

bool is_slash(char c) {
  return c == '/' || c == '\\';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

tl::unexpected<Error> refuse_url(std::string reason) {
  return fail(InvalidUrl{std::move(reason)});
}

Result<Host> parse_name(std::string_view text) {
  Host host;
  host.text = to_lower_ascii(percent_decode(text));
  for (std::size_t i = 0; i < host.text.size(); ++i) {
    const char c = host.text[i];
    if (!is_ascii(c))
      return refuse_url("its host is not ASCII; pass it through URL first, which applies IDNA");
    if (!kHostCharacters[static_cast<unsigned char>(c)]) {
      return refuse_url("its host holds " + character_name(host.text, i) + " at position " +
                        std::to_string(i));
    }
  }
  if (host.text.ends_with('.')) {
    host.trailing_dot = true;
    host.text.pop_back();
  }
  if (host.text.empty()) return refuse_url("it has no host");
  if (host.text.size() > kMaxHostBytes) return refuse_url("its host is longer than 253 bytes");
  if (host.text.front() == '.' || host.text.back() == '.' || host.text.find("..") != std::string::npos) {
    return refuse_url("its host has an empty label");
  }
  if (ends_in_number(host.text)) {
    host.address = parse_ipv4(host.text);
    if (!host.address) return refuse_url("its host looks like an IPv4 address and is none");
    host.text = to_text(*host.address);
  }
  return host;
}

/// Scheme, lower case, and the offset of what follows its colon.
Result<std::size_t> read_scheme(std::string_view text, std::string& scheme) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return refuse_url("it is not absolute");
  scheme = to_lower_ascii(text.substr(0, colon));
  if (scheme != "http" && scheme != "https" && scheme != "ws" && scheme != "wss") {
    return refuse_url("its scheme is not one of http, https, ws, wss");
  }
  return colon + 1;
}

Result<std::uint16_t> read_port(std::string_view text, std::uint16_t otherwise) {
  if (text.empty()) return otherwise;
  unsigned port = 0;
  for (const char c : text) {
    if (!is_digit(c)) return refuse_url("its port is not a number");
    port = port * 10 + static_cast<unsigned>(c - '0');
    if (port > 65535) return refuse_url("its port is over 65535");
  }
  return static_cast<std::uint16_t>(port);
}

Result<void> read_authority(std::string_view text, Range authority, Url& url) {
  const std::string_view whole = authority.of(text);
  std::size_t begin = authority.begin;
  if (const std::size_t at_sign = whole.rfind('@'); at_sign != std::string_view::npos) {
    const std::size_t colon = std::min(whole.find(':'), at_sign);
    url.has_userinfo = true;
    url.username = {begin, begin + colon};
    url.password = {begin + std::min(colon + 1, at_sign), begin + at_sign};
    begin += at_sign + 1;
  }
  const std::string_view rest = text.substr(begin, authority.end - begin);
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == std::string_view::npos) return refuse_url("its IPv6 address has no closing bracket");
  const std::size_t colon = std::min(rest.find(':', bracket), rest.size());
  url.host_range = {begin, begin + colon};
  url.port_range = {begin + std::min(colon + 1, rest.size()), authority.end};
  auto host = parse_host(url.host_range.of(text));
  if (!host) return propagate(host);
  url.host = std::move(*host);
  const auto port = read_port(url.port_range.of(text), url.default_port());
  if (!port) return propagate(port);
  url.port = *port;
  return {};
}

bool is_unreserved(char c) {
  return is_alnum(c) || kUnreservedMarks.find(c) != std::string_view::npos;
}

void append_escaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += kPercentDigits[byte >> 4];
  out += kPercentDigits[byte & 15];
}

/// One spelling for every escape; segments are not touched.
std::string canonical_escapes(std::string_view raw) {
  std::string out;
  out.reserve(raw.size() + 1);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    const int high = c == '%' && i + 2 < raw.size() ? hex_value(raw[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(raw[i + 2]) : -1;
    if (low >= 0) {
      const char decoded = static_cast<char>(high * 16 + low);
      if (is_unreserved(decoded)) {
        out += decoded;
      } else {
        append_escaped(out, decoded);
      }
      i += 2;
    } else if (c == '\\') {
      out += '/';
    } else if (is_alnum(c) || kKeptInPath.find(c) != std::string_view::npos || c == '%') {
      out += c;
    } else {
      append_escaped(out, c);
    }
  }
  return out;
}

std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool open = false;  // ends in a slash
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(slash);
    open = segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (!open) kept.push_back(segment);
  }
  std::string out;
  for (const auto segment : kept) {
    out += '/';
    out += segment;
  }
  if (open || out.empty()) out += '/';
  return out;
}

}  // namespace

Result<Host> parse_host(std::string_view text) {
  if (!text.starts_with('[')) return parse_name(text);
  if (!text.ends_with(']')) return refuse_url("its IPv6 address has no closing bracket");
  Host host;
  host.address = parse_ipv6(text.substr(1, text.size() - 2));
  if (!host.address) return refuse_url("its host is in brackets and no IPv6 address");
  host.text = to_text(*host.address);
  return host;
}

Result<Url> parse_url(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text[i])) {
      return refuse_url("it holds " + character_name(text, i) + " at position " + std::to_string(i));
    }
  }
  Url url;
  const auto after_scheme = read_scheme(text, url.scheme);
  if (!after_scheme) return propagate(after_scheme);
  std::size_t begin = *after_scheme;
  while (begin < text.size() && is_slash(text[begin])) ++begin;
  const std::size_t end = std::min(text.find_first_of("/\\?#", begin), text.size());
  if (auto read = read_authority(text, {begin, end}, url); !read) return propagate(read);
  const std::size_t hash = std::min(text.find('#', end), text.size());
  const std::size_t question = std::min(text.find('?', end), hash);
  url.path = {end, question};
  url.has_query = question < hash;
  url.query = {std::min(question + 1, hash), hash};
  url.fragment = {std::min(hash + 1, text.size()), text.size()};
  return url;
}

std::string origin_text(const Url& url) {
  const bool ipv6 = url.host.address && !url.host.address->is_ipv4;
  std::string text(url.wire_scheme());
  text += "://";
  text += ipv6 ? "[" + url.host.text + "]" : url.host.text;
  if (url.host.trailing_dot && !url.host.address) text += '.';
  if (url.port != url.default_port()) text += ":" + std::to_string(url.port);
  return text;
}

std::string canonical_path(std::string_view raw) {
  std::string path = canonical_escapes(raw);
  if (!path.starts_with('/')) path.insert(path.begin(), '/');
  if (path.find("/.") == std::string::npos) return path;
  return remove_dot_segments(path);
}

Result<std::string> resolve_location(std::string_view base, std::string_view location) {
  while (!location.empty() && location.front() == ' ') location.remove_prefix(1);
  while (!location.empty() && location.back() == ' ') location.remove_suffix(1);
  const auto url = parse_url(base);
  if (!url) return propagate(url);
  const std::size_t colon = location.find(':');
  const bool has_scheme = colon != std::string_view::npos && colon > 0 && is_alpha(location[0]) &&
                          std::all_of(location.begin(), location.begin() + static_cast<std::ptrdiff_t>(colon),
                                      [](char c) { return is_alnum(c) || c == '+' || c == '-' || c == '.'; });
  std::string resolved;
  const std::string origin(base.substr(0, url->path.begin));
  const std::string_view base_path = url->path.of(base);
  if (has_scheme) {
    resolved = std::string(location);
  } else if (location.size() >= 2 && is_slash(location[0]) && is_slash(location[1])) {
    resolved = url->scheme + ":" + std::string(location);
  } else if (!location.empty() && is_slash(location[0])) {
    resolved = origin + std::string(location);
  } else if (location.empty() || location[0] == '#') {
    resolved = std::string(base.substr(0, url->query.end)) + std::string(location);
  } else if (location[0] == '?') {
    resolved = std::string(base.substr(0, url->path.end)) + std::string(location);
  } else {
    const std::size_t slash = base_path.find_last_of("/\\");
    const std::string_view folder = slash == std::string_view::npos ? "/" : base_path.substr(0, slash + 1);
    resolved = origin + std::string(folder) + std::string(location);
  }
  const auto checked = parse_url(resolved);
  if (!checked) return propagate(checked);
  // Dot segments are resolved here, so that what is decided on is what is fetched.
  const std::string_view path = checked->path.of(resolved);
  if (path.find('.') == std::string_view::npos) return resolved;
  return resolved.substr(0, checked->path.begin) + canonical_path(path) + resolved.substr(checked->path.end);
}

}  // namespace sandboxes
