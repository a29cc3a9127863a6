#pragma once

#include <optional>
#include <string>
#include <variant>

#include "sandboxes/environment.hpp"

/// Events that are to be appended to a sandbox's own stream.
namespace sandboxes::lifecycle {

/// As it was given: seconds, or text like `10m`.
using SleepAfter = std::variant<double, std::string>;

struct NoPayload {
  bool operator==(const NoPayload&) const = default;
};
struct CreatedPayload {
  std::string instance_type;
  bool operator==(const CreatedPayload&) const = default;
};
struct ConfiguredPayload {
  std::optional<EnvChanges> env;
  std::optional<SleepAfter> sleep_after;
  std::optional<bool> keep_alive;
  bool operator==(const ConfiguredPayload&) const = default;
};
struct BackupPayload {
  std::string backup_id;
  bool operator==(const BackupPayload&) const = default;
};
struct FailurePayload {
  std::string error;
  std::optional<std::string> backup_id;
  bool operator==(const FailurePayload&) const = default;
};

/// Of a container that ended without being asked to, where the platform knows why.
struct StoppedPayload {
  std::string reason;
  bool operator==(const StoppedPayload&) const = default;
};

using Payload =
    std::variant<NoPayload, CreatedPayload, ConfiguredPayload, BackupPayload, FailurePayload, StoppedPayload>;

struct Event {
  std::string name;  ///< the last part of the type
  Payload payload;
  std::string key;       ///< idempotency key of a durable event
  bool durable = false;  ///< awaited, and kept until it is on the stream; others are best effort
  bool operator==(const Event&) const = default;
};

}  // namespace sandboxes::lifecycle
