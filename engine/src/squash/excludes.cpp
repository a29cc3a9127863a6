#include "sandboxd/squash/excludes.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace sandboxd::squash {
namespace {

constexpr std::string_view kAnywhere = "... ";

/// What the pattern matches, when that is one name only.
std::optional<std::string> literal_of(std::string_view pattern) {
  std::string out;
  for (std::size_t index = 0; index < pattern.size(); ++index) {
    if (pattern[index] == '\\' && index + 1 < pattern.size()) {
      out += pattern[++index];
      continue;
    }
    if (std::string_view("*?[]()\\").find(pattern[index]) != std::string_view::npos) return std::nullopt;
    out += pattern[index];
  }
  return out;
}

}  // namespace

Excludes::Excludes(const std::vector<std::string>& patterns) {
  for (std::string_view text : patterns) {
    Pattern pattern;
    const bool anywhere = text.starts_with(kAnywhere);
    if (anywhere) text.remove_prefix(kAnywhere.size());
    while (!text.empty()) {
      const std::string_view component = text.substr(0, text.find('/'));
      text.remove_prefix(std::min(component.size() + 1, text.size()));
      if (!component.empty()) pattern.components.push_back({std::string(component), literal_of(component)});
    }
    if (pattern.components.empty()) continue;
    const auto index = static_cast<std::uint32_t>(patterns_.size());
    patterns_.push_back(std::move(pattern));
    if (anywhere) {
      anywhere_.push_back(index);
    } else {
      anchored_.emplace_back(index, 0);
    }
  }
}

bool Excludes::match(const State& state, const std::string& name, State& inside) const {
  inside.clear();
  for (const std::uint32_t pattern : anywhere_) {
    if (advance(pattern, 0, name, inside)) return true;
  }
  for (const auto& [pattern, component] : state) {
    if (advance(pattern, component, name, inside)) return true;
  }
  return false;
}

bool Excludes::advance(std::uint32_t pattern, std::uint32_t component, const std::string& name,
                       State& inside) const {
  const auto& components = patterns_[pattern].components;
  const Component& wanted = components[component];
  constexpr int kFlags = FNM_PATHNAME | FNM_PERIOD | FNM_EXTMATCH;
  const bool matches =
      wanted.literal ? *wanted.literal == name : ::fnmatch(wanted.pattern.c_str(), name.c_str(), kFlags) == 0;
  if (!matches) return false;
  if (component + 1 == components.size()) return true;
  inside.emplace_back(pattern, component + 1);
  return false;
}

}  // namespace sandboxd::squash
