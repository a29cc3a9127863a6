#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sandboxes/address.hpp"
#include "sandboxes/result.hpp"

namespace sandboxes {

/// A part of a text, as offsets into it.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const Range&) const = default;
};

/// A host as it is compared: lower case, percent-decoded, without a trailing dot, addresses in one spelling.
struct Host {
  std::string text;
  std::optional<Address> address;
  /// Names the same host in DNS; a secret's pin still wants the spelling without it.
  bool trailing_dot = false;
  bool operator==(const Host&) const = default;
};

/// An http, https, ws or wss URL, read as the URL standard reads it. The text itself is never rewritten: the
/// ranges point into it. Hosts must be ASCII (IDNA is the caller's), and no control character may occur
/// anywhere.
struct Url {
  std::string scheme;
  Host host;
  std::uint16_t port = 0;  ///< effective: 80 or 443 when none is written
  bool has_userinfo = false;
  Range username;
  Range password;
  Range host_range;
  Range port_range;
  Range path;      ///< with its leading slash; empty when there is none
  Range query;     ///< without the `?`
  Range fragment;  ///< without the `#`
  bool has_query = false;

  [[nodiscard]] bool secure() const { return scheme == "https" || scheme == "wss"; }
  [[nodiscard]] bool web_socket() const { return scheme == "ws" || scheme == "wss"; }
  /// http or https: what travels on the wire.
  [[nodiscard]] std::string_view wire_scheme() const { return secure() ? "https" : "http"; }
  [[nodiscard]] std::uint16_t default_port() const { return secure() ? 443 : 80; }
};

[[nodiscard]] Result<Url> parse_url(std::string_view text);
/// A host without a port: a name, an IPv4 address in any spelling, or an IPv6 address in brackets.
[[nodiscard]] Result<Host> parse_host(std::string_view text);

/// `https://host:port`, the port only where it is not the scheme's own.
[[nodiscard]] std::string origin_text(const Url& url);

/// The path in the one spelling that rules are compared in: `\` is `/`, dot segments are resolved, unreserved
/// characters are not escaped, everything else that may not stand in a path is, with upper-case digits.
[[nodiscard]] std::string canonical_path(std::string_view raw);

/// What `location` means to a request for `base`, as the URL standard resolves it.
[[nodiscard]] Result<std::string> resolve_location(std::string_view base, std::string_view location);

}  // namespace sandboxes
