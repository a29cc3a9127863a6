// Netlink messages by hand: what ip and nft would do in tens of milliseconds takes less than one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Builds one datagram of netlink messages with nested attributes.
class NetlinkBatch {
 public:
  void begin(std::uint16_t type, std::uint16_t flags, std::span<const std::byte> header);
  void end();
  void bytes(std::uint16_t type, std::span<const std::byte> value);
  void text(std::uint16_t type, std::string_view value);  ///< with its final NUL
  void u32(std::uint16_t type, std::uint32_t value);
  void be32(std::uint16_t type, std::uint32_t value);
  [[nodiscard]] std::size_t open(std::uint16_t type);
  void close(std::size_t start);

  [[nodiscard]] std::span<const std::byte> data() const { return buffer_; }
  [[nodiscard]] std::uint32_t messages() const { return sequence_; }

 private:
  void append(const void* data, std::size_t size);
  void pad();

  std::vector<std::byte> buffer_;
  std::size_t message_ = 0;
  std::uint32_t sequence_ = 0;
};

/// Sends it and reads acknowledgements until each of `acknowledged` messages is answered; the first refusal
/// is the error.
[[nodiscard]] SysStatus netlink_send(int protocol, const NetlinkBatch& batch, std::uint32_t acknowledged,
                                     const std::string& what);

template <class T>
[[nodiscard]] std::span<const std::byte> as_bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace sandboxd
