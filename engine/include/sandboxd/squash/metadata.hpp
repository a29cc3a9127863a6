#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace sandboxd::squash {

/// A failure is a line for standard error.
template <class T>
using Outcome = tl::expected<T, std::string>;

inline constexpr std::size_t kBlockSize = std::size_t{128} << 10U;

/// Appends the integer in the format's byte order.
template <class Integer>
void put(std::string& out, Integer value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The bytes as lz4, or nothing when that would not be shorter: a reader refuses a block that is longer than
/// what it holds.
std::optional<std::string> compressed(std::string_view bytes);

/// Where something begins in a sequence of metadata blocks.
struct MetadataPlace {
  std::uint64_t block = 0;
  std::uint16_t offset = 0;
  [[nodiscard]] std::uint64_t packed() const { return block << 16U | offset; }
};

/// A sequence of metadata blocks, kept in memory: tables are written when all data is.
class MetadataWriter {
 public:
  void append(std::string_view bytes);
  [[nodiscard]] MetadataPlace here() const;
  /// All blocks; nothing may be appended afterwards.
  const std::string& finish();

 private:
  void flush();

  std::string blocks_;
  std::string pending_;
};

struct Table {
  std::string bytes;
  std::uint64_t start = 0;  ///< what the superblock names
};
/// A table that is read by index: metadata blocks, and after them (and `head`) where each of them is.
Table indexed_table(std::string_view data, std::uint64_t position, std::string_view head = {});

}  // namespace sandboxd::squash
