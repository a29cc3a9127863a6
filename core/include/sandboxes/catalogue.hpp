#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sandboxes/instance_types.hpp"
#include "sandboxes/projection.hpp"
#include "sandboxes/result.hpp"

namespace sandboxes {

/// What `create` is asked for, and what the claim on the catalogue's stream keeps.
struct ClaimInput {
  InstanceType instance_type = default_instance_type;
  std::optional<SleepAfterValue> sleep_after;
  std::optional<bool> keep_alive;
  std::map<std::string, std::string> env;
  bool operator==(const ClaimInput&) const = default;
};

/// The claim of a path: its `create-requested` event.
struct Claim {
  std::string path;
  ClaimInput input;
};

/// What the sandbox's own object remembers of its birth.
struct BirthRecord {
  bool creation_pending = false;
  bool destroyed = false;
  std::optional<std::string> created_at;
};

struct ClaimRequest {
  std::string path;
  std::optional<Claim> claim;
  std::optional<BirthRecord> record;
  bool in_flight = false;  ///< an attempt runs in this object right now
  /// Of `create`; nothing for any other verb.
  std::optional<ClaimInput> input;
};

/// `use`: the sandbox is there, and a verb other than create may go on.
enum class ClaimOutcome : std::uint8_t { claim, resume, use };

struct ClaimResolution {
  ClaimOutcome outcome;
  /// The time of the first attempt, when there was one.
  std::optional<std::string> created_at;
};

/// Whether `create` may go on: a free path is claimed, an unfinished creation is resumed by the same input
/// only, and anything else is refused.
[[nodiscard]] Result<ClaimResolution> resolve_claim(const ClaimRequest& request);

/// Asked before a name is claimed and before anything is asked of a sandbox: a name is used once, so that
/// none may be lost to a server on which nothing plays containers.
[[nodiscard]] Result<void> check_containers(std::string_view engine_mode);

/// One for each path, ever: the stream takes an idempotency key once.
[[nodiscard]] std::string claim_key(std::string_view path);

/// The class that hosts a claimed sandbox; a path that was never claimed routes nowhere.
[[nodiscard]] Result<const InstanceTypeRow*> route_claim(const std::optional<Claim>& claim,
                                                         std::string_view path);

}  // namespace sandboxes
