#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// An IP address. IPv4 lies in the last four bytes, the others are zero; an IPv4-mapped IPv6 address is IPv4.
struct Address {
  std::array<std::uint8_t, 16> bytes{};
  bool is_ipv4 = false;
  bool operator==(const Address&) const = default;
};

enum class AddressClass : std::uint8_t {
  public_address,
  unspecified,
  loopback,
  private_network,
  shared,  ///< carrier-grade NAT, RFC 6598
  link_local,
  unique_local,
  multicast,
  metadata,  ///< where clouds serve the credentials of the machine
  reserved,
};

/// `public`, `loopback`, `private`, `link-local`, ...
[[nodiscard]] std::string_view class_name(AddressClass address_class);

/// Whether the text is read as an IPv4 address in a URL: its last label is a number.
[[nodiscard]] bool ends_in_number(std::string_view host);
/// As the URL standard reads it: dotted or short, decimal, octal (017) or hexadecimal (0x7f) parts.
[[nodiscard]] std::optional<Address> parse_ipv4(std::string_view text);
/// Without brackets and without a zone. An IPv4-mapped address comes out as IPv4.
[[nodiscard]] std::optional<Address> parse_ipv6(std::string_view text);
/// Any spelling: the above, in brackets, with a zone, with a trailing dot.
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// What an address is for. A tunnelling form (6to4, NAT64, Teredo, IPv4-compatible) is what the IPv4 inside
/// it is.
[[nodiscard]] AddressClass classify(const Address& address);
/// Dotted IPv4, or IPv6 as RFC 5952 writes it.
[[nodiscard]] std::string to_text(const Address& address);

/// Names that lead to this machine or to a cloud's metadata service, wherever DNS would send them.
[[nodiscard]] std::optional<AddressClass> classify_name(std::string_view canonical_host);

}  // namespace sandboxes
