// The resolver of a container: every name gets an address of its own, which only means that name.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sandboxd {

/// Names and their synthetic addresses: 198.18.0.0/15, and the same number in fd69:7465:7261:7465::/64. The
/// names asked for longest ago make room when there are too many.
class NameTable {
 public:
  explicit NameTable(std::uint32_t capacity = 32768) : capacity_(capacity) {}

  /// The number of a name, in lower case.
  [[nodiscard]] std::uint32_t number_of(const std::string& name);
  [[nodiscard]] std::optional<std::string> name_of(std::uint32_t number) const;
  /// The name that an address stands for; both families, in network order.
  [[nodiscard]] std::optional<std::string> name_of_v4(const std::array<std::uint8_t, 4>& address) const;
  [[nodiscard]] std::optional<std::string> name_of_v6(const std::array<std::uint8_t, 16>& address) const;

  [[nodiscard]] static std::array<std::uint8_t, 4> v4(std::uint32_t number);
  [[nodiscard]] static std::array<std::uint8_t, 16> v6(std::uint32_t number);

 private:
  struct Entry {
    std::string name;
    std::uint32_t number;
  };
  std::uint32_t capacity_;
  std::list<Entry> recent_;  ///< asked for last at the front
  std::unordered_map<std::string, std::list<Entry>::iterator> by_name_;
  std::unordered_map<std::uint32_t, std::list<Entry>::iterator> by_number_;
};

/// Answers one query; nothing when it is not one. `ipv6` says whether AAAA records are of use.
[[nodiscard]] std::optional<std::string> answer_dns(std::string_view query, NameTable& names, bool ipv6);

}  // namespace sandboxd
