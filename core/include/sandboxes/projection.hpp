#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes {

enum class ProjectionStatus : std::uint8_t { created, running, stopped, destroyed };

[[nodiscard]] std::string_view status_name(ProjectionStatus status);
[[nodiscard]] std::optional<ProjectionStatus> parse_status(std::string_view name);

/// A sandbox's `sleepAfter` as it was given: seconds, or text like `10m`.
using SleepAfterValue = std::variant<double, std::string>;

/// Searched by views: a fold assigns far more often than it adds.
using ProjectionEnv = std::map<std::string, std::string, std::less<>>;

/// What a sandbox's events add up to.
struct ProjectionState {
  /// From the birth certificate; a text, since an older core may meet a newer type.
  std::optional<std::string> instance_type;
  std::optional<ProjectionStatus> status;
  bool running = false;
  std::optional<std::string> last_backup_id;
  ProjectionEnv env;
  std::optional<SleepAfterValue> sleep_after;
  bool keep_alive = false;
  std::int64_t offset = 0;  ///< of the newest event that was folded
  /// Ranges below `offset` that were never folded, oldest first; empty for a stream that was read without
  /// holes.
  std::vector<std::pair<std::int64_t, std::int64_t>> missing;
  bool operator==(const ProjectionState&) const = default;
};

/// Folds a batch of events, each an object with `offset`, `type` and `payload`, in any order within the
/// batch. Unknown types and payloads that do not fit are skipped, an offset that was folded already changes
/// nothing, and destroyed is final. Folding a stream in any batch sizes gives one state. On an error the
/// state is as it was.
[[nodiscard]] Result<void> fold(ProjectionState& state, simdjson::dom::array events);

/// Folds a JSON array of events straight from its bytes, which SIMDJSON_PADDING readable bytes follow:
/// several times faster, since what no fold reads is only looked at for its brackets, strings and UTF-8.
/// False, and the state as it was, for a batch that is in any way unusual (out of order, with escapes in
/// keys, malformed, …): then the bytes are to be parsed and given to `fold`, which says what is wrong.
[[nodiscard]] bool fold_quickly(ProjectionState& state, std::string_view bytes);

}  // namespace sandboxes
