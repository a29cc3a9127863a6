#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxes::tests {

/// A small generator with a fixed seed: a failure repeats itself on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }

  template <class List>
  std::string pick(const List& list) {
    return std::string(list[below(list.size())]);
  }

 private:
  std::uint64_t state_;
};

/// How often a property is tried: FULL=1 asks for the long run.
inline int rounds(int usual, int full) {
  const char* wanted = std::getenv("FULL");
  return wanted != nullptr && std::string_view(wanted) == "1" ? full : usual;
}

}  // namespace sandboxes::tests
