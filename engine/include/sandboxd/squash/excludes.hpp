#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::squash {

/// What to leave out, as mksquashfs -wildcards takes it: a pattern's components are matched one by one from
/// the root, and those of a pattern that begins with "... " from any directory.
class Excludes {
 public:
  /// How far each pattern was matched by the way to one directory.
  using State = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  explicit Excludes(const std::vector<std::string>& patterns);
  [[nodiscard]] const State& root() const { return anchored_; }
  /// Whether the entry is left out; if not, `inside` is the state in it.
  bool match(const State& state, const std::string& name, State& inside) const;

 private:
  struct Component {
    std::string pattern;
    std::optional<std::string> literal;  ///< what alone matches it, for speed
  };
  struct Pattern {
    std::vector<Component> components;
  };
  [[nodiscard]] bool advance(std::uint32_t pattern, std::uint32_t component, const std::string& name,
                             State& inside) const;

  std::vector<Pattern> patterns_;
  State anchored_;
  std::vector<std::uint32_t> anywhere_;
};

}  // namespace sandboxd::squash
