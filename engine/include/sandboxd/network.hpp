// The network of a container: a loopback device, routes that make every address local, and rules that send
// what may be relayed to the relay and refuse the rest at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Sockets made inside for the relay and the resolver, which live outside. The second relay is missing
/// without IPv6.
struct NetworkSockets {
  Fd dns_udp;
  Fd dns_tcp;
  Fd relay_v4;
  Fd relay_v6;
};

inline constexpr const char* resolver_address = "127.0.0.53";

/// Sets up the network namespace that the caller has just entered; ports 80 and 443 go to the relay.
[[nodiscard]] SysResult<NetworkSockets> set_up_network();
/// Has more ports go to the relay, in the same namespace.
[[nodiscard]] SysStatus relay_ports(const NetworkSockets& sockets, std::span<const std::uint16_t> ports);

}  // namespace sandboxd
