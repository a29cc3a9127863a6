#include "ordering.hpp"

#include <algorithm>

namespace sandboxes::internal {

std::vector<std::uint32_t> ordered_positions(std::size_t count, const void* list, Precedes precedes) {
  std::vector<std::uint32_t> from(count);
  for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::uint32_t>(i);
  std::vector<std::uint32_t> to(count);
  // Merges neighbouring runs of one, two, four, … until there is one.
  for (std::size_t run = 1; run < count; run *= 2) {
    for (std::size_t begin = 0; begin < count; begin += 2 * run) {
      const std::size_t middle = std::min(begin + run, count);
      const std::size_t end = std::min(begin + 2 * run, count);
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t place = begin; place < end; ++place) {
        const bool takes_right = left == middle || (right < end && precedes(list, from[right], from[left]));
        to[place] = from[takes_right ? right++ : left++];
      }
    }
    from.swap(to);
  }
  return from;
}

}  // namespace sandboxes::internal
