#include "sandboxd/network.hpp"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "sandboxd/netlink.hpp"

namespace sandboxd {
namespace {

const in_addr own_v4{htonl(0xc613fffe)};  // 198.19.255.254, beyond the resolver's numbers
const in6_addr own_v6{{{0xfd, 0x69, 0x74, 0x65, 0x72, 0x61, 0x74, 0x66, 0, 0, 0, 0, 0, 0, 0, 1}}};
constexpr std::uint32_t loopback_index = 1;  // the first device of every network namespace

SysStatus raise_loopback() {
  NetlinkBatch batch;
  ifinfomsg link{};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(loopback_index);
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  batch.begin(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, as_bytes_of(link));
  batch.end();
  return netlink_send(NETLINK_ROUTE, batch, 1, "raise the loopback device");
}

// An address that is not loopback's: without one, resolvers that are asked for addresses "as configured" give
// none.
template <class Address>
SysStatus add_own_address(unsigned char family, const Address& own) {
  NetlinkBatch batch;
  ifaddrmsg address{};
  address.ifa_family = family;
  address.ifa_prefixlen = sizeof(Address) * 8;
  address.ifa_flags = IFA_F_NODAD;
  address.ifa_index = loopback_index;
  batch.begin(RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, as_bytes_of(address));
  batch.bytes(IFA_LOCAL, as_bytes_of(own));
  batch.bytes(IFA_ADDRESS, as_bytes_of(own));
  batch.end();
  return netlink_send(NETLINK_ROUTE, batch, 1, "add the container's own address");
}

// "local default dev lo": packets to any address are delivered here, from the loopback address.
template <class Address>
SysStatus add_local_default(unsigned char family, const Address& source) {
  NetlinkBatch batch;
  rtmsg route{};
  route.rtm_family = family;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_LOCAL;
  batch.begin(RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, as_bytes_of(route));
  batch.u32(RTA_OIF, loopback_index);
  batch.bytes(RTA_PREFSRC, as_bytes_of(source));
  batch.end();
  return netlink_send(NETLINK_ROUTE, batch, 1, "add the local default route");
}

// One address family's table: chain "out" translates, chain "wall" refuses.
class RuleWriter {
 public:
  RuleWriter(NetlinkBatch& batch, std::uint8_t family) : batch_(batch), family_(family) {}

  void table() {
    message(NFT_MSG_NEWTABLE, 0);
    batch_.text(NFTA_TABLE_NAME, name);
    batch_.end();
  }

  void chain(const char* chain, const char* type, std::int32_t priority) {
    message(NFT_MSG_NEWCHAIN, 0);
    batch_.text(NFTA_CHAIN_TABLE, name);
    batch_.text(NFTA_CHAIN_NAME, chain);
    const auto hook = batch_.open(NFTA_CHAIN_HOOK);
    batch_.be32(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    batch_.be32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(priority));
    batch_.close(hook);
    batch_.be32(NFTA_CHAIN_POLICY, NF_ACCEPT);
    batch_.text(NFTA_CHAIN_TYPE, type);
    batch_.end();
  }

  /// What goes to the container's own address stays inside.
  void accept_own(const char* chain) {
    begin_rule(chain);
    if (family_ == NFPROTO_IPV4) {
      load(NFT_PAYLOAD_NETWORK_HEADER, 16, 4);
      compare(NFT_CMP_EQ, as_bytes_of(own_v4));
    } else {
      load(NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
      compare(NFT_CMP_EQ, as_bytes_of(own_v6));
    }
    const auto immediate = begin_expression("immediate");
    batch_.be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    const auto data = batch_.open(NFTA_IMMEDIATE_DATA);
    const auto verdict = batch_.open(NFTA_DATA_VERDICT);
    batch_.be32(NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_.close(verdict);
    batch_.close(data);
    end_expression(immediate);
    end_rule();
  }

  void redirect(std::uint16_t port, std::uint16_t relay_port) {
    begin_rule("out");
    match_tcp();
    match_not_loopback();
    load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
    const std::uint16_t wanted = htons(port);
    compare(NFT_CMP_EQ, as_bytes_of(wanted));
    const auto immediate = begin_expression("immediate");
    batch_.be32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
    const std::uint16_t target = htons(relay_port);
    value(NFTA_IMMEDIATE_DATA, as_bytes_of(target));
    end_expression(immediate);
    const auto redir = begin_expression("redir");
    batch_.be32(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    end_expression(redir);
    end_rule();
  }

  void refuse(bool tcp) {
    begin_rule("wall");
    if (tcp) match_tcp();
    match_not_loopback();
    const auto reject = begin_expression("reject");
    batch_.be32(NFTA_REJECT_TYPE, tcp ? NFT_REJECT_TCP_RST : NFT_REJECT_ICMP_UNREACH);
    constexpr std::uint8_t port_unreachable_v4 = 3;
    constexpr std::uint8_t port_unreachable_v6 = 4;
    const std::uint8_t code = family_ == NFPROTO_IPV4 ? port_unreachable_v4 : port_unreachable_v6;
    if (!tcp) batch_.bytes(NFTA_REJECT_ICMP_CODE, as_bytes_of(code));
    end_expression(reject);
    end_rule();
  }

 private:
  static constexpr const char* name = "sandbox";
  struct Expression {
    std::size_t element;
    std::size_t data;
  };

  void message(std::uint16_t type, std::uint16_t flags) {
    const nfgenmsg header{family_, NFNETLINK_V0, 0};
    batch_.begin(static_cast<std::uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | type),
                 static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | flags),
                 as_bytes_of(header));
  }
  void begin_rule(const char* chain) {
    message(NFT_MSG_NEWRULE, NLM_F_APPEND);
    batch_.text(NFTA_RULE_TABLE, name);
    batch_.text(NFTA_RULE_CHAIN, chain);
    expressions_ = batch_.open(NFTA_RULE_EXPRESSIONS);
  }
  void end_rule() {
    batch_.close(expressions_);
    batch_.end();
  }
  Expression begin_expression(const char* kind) {
    const auto element = batch_.open(NFTA_LIST_ELEM);
    batch_.text(NFTA_EXPR_NAME, kind);
    return {element, batch_.open(NFTA_EXPR_DATA)};
  }
  void end_expression(const Expression& expression) {
    batch_.close(expression.data);
    batch_.close(expression.element);
  }
  void value(std::uint16_t type, std::span<const std::byte> bytes) {
    const auto data = batch_.open(type);
    batch_.bytes(NFTA_DATA_VALUE, bytes);
    batch_.close(data);
  }
  void compare(std::uint32_t operation, std::span<const std::byte> bytes) {
    const auto cmp = begin_expression("cmp");
    batch_.be32(NFTA_CMP_SREG, NFT_REG_1);
    batch_.be32(NFTA_CMP_OP, operation);
    value(NFTA_CMP_DATA, bytes);
    end_expression(cmp);
  }
  void load(std::uint32_t base, std::uint32_t offset, std::uint32_t length) {
    const auto payload = begin_expression("payload");
    batch_.be32(NFTA_PAYLOAD_DREG, NFT_REG_1);
    batch_.be32(NFTA_PAYLOAD_BASE, base);
    batch_.be32(NFTA_PAYLOAD_OFFSET, offset);
    batch_.be32(NFTA_PAYLOAD_LEN, length);
    end_expression(payload);
  }
  void match_tcp() {
    const auto meta = begin_expression("meta");
    batch_.be32(NFTA_META_DREG, NFT_REG_1);
    batch_.be32(NFTA_META_KEY, NFT_META_L4PROTO);
    end_expression(meta);
    const std::uint8_t protocol = IPPROTO_TCP;
    compare(NFT_CMP_EQ, as_bytes_of(protocol));
  }
  void match_not_loopback() {
    if (family_ == NFPROTO_IPV4) {
      // The first byte of the destination says it: 127.0.0.0/8.
      load(NFT_PAYLOAD_NETWORK_HEADER, 16, 1);
      const std::uint8_t loopback_net = 127;
      compare(NFT_CMP_NEQ, as_bytes_of(loopback_net));
    } else {
      load(NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
      compare(NFT_CMP_NEQ, as_bytes_of(in6addr_loopback));
    }
  }

  NetlinkBatch& batch_;
  std::uint8_t family_;
  std::size_t expressions_ = 0;
};

template <class Write>
SysStatus change_rules(std::uint8_t family, Write write) {
  NetlinkBatch batch;
  const nfgenmsg header{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  batch.begin(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, as_bytes_of(header));
  batch.end();
  RuleWriter rules(batch, family);
  write(rules);
  batch.begin(NFNL_MSG_BATCH_END, NLM_F_REQUEST, as_bytes_of(header));
  batch.end();
  const std::uint32_t acknowledged = batch.messages() - 2;
  return netlink_send(NETLINK_NETFILTER, batch, acknowledged,
                      "write the network rules (kernel without nf_tables nat?)");
}

SysStatus write_rules(std::uint8_t family, std::uint16_t relay_port) {
  return change_rules(family, [&](RuleWriter& rules) {
    constexpr std::int32_t nat_priority = -100;
    rules.table();
    rules.chain("out", "nat", nat_priority);
    rules.chain("wall", "filter", 0);
    rules.accept_own("out");
    rules.accept_own("wall");
    for (const auto port : {std::uint16_t{80}, std::uint16_t{443}}) rules.redirect(port, relay_port);
    rules.refuse(true);
    rules.refuse(false);
  });
}

SysResult<Fd> bound_socket(int type, const sockaddr* address, socklen_t size, const char* what) {
  Fd socket(::socket(address->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("socket_failed", what);
  if (address->sa_family == AF_INET6) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  if (::bind(socket.get(), address, size) != 0) return failed("bind_failed", what);
  if (type == SOCK_STREAM && ::listen(socket.get(), 1024) != 0) return failed("listen_failed", what);
  return socket;
}

SysResult<Fd> bound_v4(int type, const char* host, std::uint16_t port, const char* what) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return bound_socket(type, reinterpret_cast<const sockaddr*>(&address), sizeof address, what);
}

SysResult<Fd> bound_v6(const char* what) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return bound_socket(SOCK_STREAM, reinterpret_cast<const sockaddr*>(&address), sizeof address, what);
}

std::uint16_t port_of(int socket) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.sin6_port);  // at the same place in both families
}

}  // namespace

SysResult<NetworkSockets> set_up_network() {
  if (auto done = raise_loopback(); !done) return tl::make_unexpected(done.error());
  if (auto done = add_own_address(AF_INET, own_v4); !done) return tl::make_unexpected(done.error());
  const in_addr loopback_v4{htonl(INADDR_LOOPBACK)};
  if (auto done = add_local_default(AF_INET, loopback_v4); !done) return tl::make_unexpected(done.error());
  NetworkSockets sockets;
  const struct {
    Fd& target;
    int type;
    const char* host;
    std::uint16_t port;
    const char* what;
  } wanted[] = {{sockets.dns_udp, SOCK_DGRAM, resolver_address, 53, "resolver over UDP"},
                {sockets.dns_tcp, SOCK_STREAM, resolver_address, 53, "resolver over TCP"},
                {sockets.relay_v4, SOCK_STREAM, "127.0.0.1", 0, "relay"}};
  for (const auto& one : wanted) {
    auto socket = bound_v4(one.type, one.host, one.port, one.what);
    if (!socket) return tl::make_unexpected(socket.error());
    one.target = std::move(*socket);
  }
  if (auto done = write_rules(NFPROTO_IPV4, port_of(sockets.relay_v4.get())); !done) {
    return tl::make_unexpected(done.error());
  }
  // Low ports are for everybody inside, as in other containers.
  (void)poke("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  auto relay_v6 = bound_v6("relay over IPv6");
  if (!relay_v6) return sockets;  // a kernel without IPv6
  if (auto done = add_own_address(AF_INET6, own_v6); !done) return tl::make_unexpected(done.error());
  if (auto done = add_local_default(AF_INET6, in6addr_loopback); !done)
    return tl::make_unexpected(done.error());
  if (auto done = write_rules(NFPROTO_IPV6, port_of(relay_v6->get())); !done) {
    return tl::make_unexpected(done.error());
  }
  sockets.relay_v6 = std::move(*relay_v6);
  return sockets;
}

SysStatus relay_ports(const NetworkSockets& sockets, std::span<const std::uint16_t> ports) {
  if (ports.empty()) return {};
  for (const auto& [family, relay] :
       {std::pair{NFPROTO_IPV4, &sockets.relay_v4}, std::pair{NFPROTO_IPV6, &sockets.relay_v6}}) {
    if (!*relay) continue;
    const auto relay_port = port_of(relay->get());
    auto done = change_rules(static_cast<std::uint8_t>(family), [&](RuleWriter& rules) {
      for (const auto port : ports) rules.redirect(port, relay_port);
    });
    if (!done) return done;
  }
  return {};
}

}  // namespace sandboxd
