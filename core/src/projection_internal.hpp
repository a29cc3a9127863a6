#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "sandboxes/projection.hpp"

namespace sandboxes::internal {

/// Whether the state says of an offset below its own that it was never folded.
[[nodiscard]] bool was_missed(const ProjectionState& state, std::int64_t offset);

inline constexpr std::string_view kSandboxPrefix = "events.iterate.com/sandbox/";

/// Takes an offset that is newer than the state's as its own, and remembers those between as missed.
inline void move_on(ProjectionState& state, std::int64_t offset) {
  if (offset > state.offset + 1) state.missing.emplace_back(state.offset + 1, offset - 1);
  state.offset = offset;
}

/// Moves the state on by one event that is newer than it.
void advance(ProjectionState& state, std::int64_t offset, std::string_view type,
             const std::optional<simdjson::dom::element>& payload);

}  // namespace sandboxes::internal
