#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "sandboxes/projection.hpp"

namespace sandboxes::internal {

/// Whether the state says of an offset below its own that it was never folded.
[[nodiscard]] bool was_missed(const ProjectionState& state, std::int64_t offset);

/// Whether the fold of this type looks into the payload.
[[nodiscard]] bool reads_payload(std::string_view type);

/// Moves the state on by one event that is newer than it.
void advance(ProjectionState& state, std::int64_t offset, std::string_view type,
             const std::optional<simdjson::dom::element>& payload);

}  // namespace sandboxes::internal
