#include "sandboxd/netlink.hpp"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace sandboxd {

void NetlinkBatch::append(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), first, first + size);
}

void NetlinkBatch::pad() {
  while (buffer_.size() % NLMSG_ALIGNTO != 0) buffer_.push_back(std::byte{0});
}

void NetlinkBatch::begin(std::uint16_t type, std::uint16_t flags, std::span<const std::byte> header) {
  message_ = buffer_.size();
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_flags = flags;
  head.nlmsg_seq = ++sequence_;
  append(&head, sizeof head);
  append(header.data(), header.size());
  pad();
}

void NetlinkBatch::end() {
  const auto length = static_cast<std::uint32_t>(buffer_.size() - message_);
  std::memcpy(buffer_.data() + message_, &length, sizeof length);
}

void NetlinkBatch::bytes(std::uint16_t type, std::span<const std::byte> value) {
  const nlattr attribute{static_cast<std::uint16_t>(sizeof(nlattr) + value.size()), type};
  append(&attribute, sizeof attribute);
  append(value.data(), value.size());
  pad();
}

void NetlinkBatch::text(std::uint16_t type, std::string_view value) {
  const std::string terminated(value);
  bytes(type, std::as_bytes(std::span(terminated.c_str(), terminated.size() + 1)));
}

void NetlinkBatch::u32(std::uint16_t type, std::uint32_t value) {
  bytes(type, as_bytes_of(value));
}

void NetlinkBatch::be32(std::uint16_t type, std::uint32_t value) {
  u32(type, htonl(value));
}

std::size_t NetlinkBatch::open(std::uint16_t type) {
  const std::size_t start = buffer_.size();
  const nlattr attribute{sizeof(nlattr), static_cast<std::uint16_t>(type | NLA_F_NESTED)};
  append(&attribute, sizeof attribute);
  return start;
}

void NetlinkBatch::close(std::size_t start) {
  const auto length = static_cast<std::uint16_t>(buffer_.size() - start);
  std::memcpy(buffer_.data() + start, &length, sizeof length);
}

SysStatus netlink_send(int protocol, const NetlinkBatch& batch, std::uint32_t acknowledged,
                       const std::string& what) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket) return failed("netlink_failed", "netlink socket");
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto data = batch.data();
  if (::sendto(socket.get(), data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&kernel),
               sizeof kernel) < 0) {
    return failed("netlink_failed", what);
  }
  alignas(nlmsghdr) std::array<char, 16384> buffer;
  while (acknowledged > 0) {
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("netlink_failed", what);
    auto left = static_cast<std::size_t>(count);
    const char* at = buffer.data();
    while (left >= sizeof(nlmsghdr)) {
      nlmsghdr head;
      std::memcpy(&head, at, sizeof head);
      if (head.nlmsg_len < sizeof head || head.nlmsg_len > left) break;
      if (head.nlmsg_type == NLMSG_ERROR) {
        int error = 0;
        std::memcpy(&error, at + sizeof head, sizeof error);
        if (error != 0) return failed("netlink_refused", what, -error);
        --acknowledged;
      }
      const std::size_t step = NLMSG_ALIGN(head.nlmsg_len);
      if (step >= left) break;
      at += step;
      left -= step;
    }
  }
  return {};
}

}  // namespace sandboxd
