#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sandboxes::internal {

/// Whether what is at `first` of a list has to come before what is at `second`.
using Precedes = bool (*)(const void* list, std::uint32_t first, std::uint32_t second);

/// The positions 0 to `count` - 1 in order; what neither precedes stays as it was.
[[nodiscard]] std::vector<std::uint32_t> ordered_positions(std::size_t count, const void* list,
                                                           Precedes precedes);

/// Sorts, stably. The sorts of the library are compiled anew for each type, a twentieth of the whole wasm; of
/// this one only what follows is.
template <class T, class Less>
void order(std::vector<T>& list, Less /*stateless*/) {
  const Precedes precedes = [](const void* given, std::uint32_t first, std::uint32_t second) {
    const auto& items = *static_cast<const std::vector<T>*>(given);
    return Less{}(items[first], items[second]);
  };
  const std::vector<std::uint32_t> positions = ordered_positions(list.size(), &list, precedes);
  std::vector<T> ordered;
  ordered.reserve(list.size());
  for (const std::uint32_t position : positions) ordered.push_back(std::move(list[position]));
  list = std::move(ordered);
}

}  // namespace sandboxes::internal
