#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

struct InvalidProjectId {
  static constexpr ErrorInfo info{"invalid_project_id", 400, false,
                                  "A project id is not a lower-case host label."};
  std::string got;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidProjectId&) const = default;
};

/// A path of any kind is not one that this system accepts as it stands. Paths are never rewritten.
struct InvalidPath {
  static constexpr ErrorInfo info{"invalid_path", 400, false,
                                  "A path is not canonical or not of the kind asked for."};
  std::string kind;  ///< "sandbox path", "secret path", "stream path"
  std::string got;
  std::string reason;
  std::int64_t position;  ///< byte offset of the offending character, -1 when the whole is wrong
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidPath&) const = default;
};

struct NameTooLong {
  static constexpr ErrorInfo info{
      "name_too_long", 400, false,
      "A path is too long: with its project's id it names an object, in 256 bytes."};
  std::string what;  ///< as the caller knows it: `path`, or `name` where a whole name was given
  std::string got;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const NameTooLong&) const = default;
};

struct InvalidName {
  static constexpr ErrorInfo info{"invalid_name", 400, false,
                                  "A Durable Object name is not one that the core made."};
  std::string got;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidName&) const = default;
};

/// Identity is write-once: what an object was told first holds.
struct IdentityMismatch {
  static constexpr ErrorInfo info{"identity_mismatch", 409, false,
                                  "An object was addressed as somebody else."};
  std::string stored;
  std::string given;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const IdentityMismatch&) const = default;
};

struct InvalidInstanceType {
  static constexpr ErrorInfo info{"invalid_instance_type", 400, false,
                                  "There is no instance type of this name."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidInstanceType&) const = default;
};

struct UnknownEventType {
  static constexpr ErrorInfo info{"unknown_event_type", 400, false, "There is no event type of this name."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const UnknownEventType&) const = default;
};

struct InvalidEvent {
  static constexpr ErrorInfo info{"invalid_event", 400, false, "An event's payload does not fit its type."};
  std::string type;
  std::string field;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidEvent&) const = default;
};

struct EventTooLarge {
  static constexpr ErrorInfo info{"event_too_large", 413, false, "An event is larger than a stream takes."};
  std::string type;
  std::int64_t bytes;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const EventTooLarge&) const = default;
};

/// A batch holds an event that this projection never saw and that is older than its state.
struct OutOfOrder {
  static constexpr ErrorInfo info{"out_of_order", 409, false, "A batch has a hole before its first event."};
  std::int64_t offset;
  std::int64_t state_offset;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const OutOfOrder&) const = default;
};

struct SandboxExists {
  static constexpr ErrorInfo info{"sandbox_exists", 409, false,
                                  "The name is taken by a sandbox that exists."};
  std::string path;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SandboxExists&) const = default;
};

struct SandboxNotFound {
  static constexpr ErrorInfo info{"sandbox_not_found", 404, false,
                                  "No sandbox was ever created at this path."};
  std::string path;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SandboxNotFound&) const = default;
};

struct SandboxDestroyed {
  static constexpr ErrorInfo info{"sandbox_destroyed", 410, false,
                                  "The sandbox was destroyed; its name is retired."};
  std::string path;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SandboxDestroyed&) const = default;
};

struct CreationInProgress {
  static constexpr ErrorInfo info{"creation_in_progress", 409, true,
                                  "The sandbox is being created right now."};
  std::string path;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const CreationInProgress&) const = default;
};

struct CreationUnfinished {
  static constexpr ErrorInfo info{"creation_unfinished", 409, true,
                                  "The sandbox was claimed, and its creation did not finish."};
  std::string path;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const CreationUnfinished&) const = default;
};

struct InstanceTypeMismatch {
  static constexpr ErrorInfo info{"instance_type_mismatch", 409, false,
                                  "A sandbox was asked for with another instance type than it has."};
  std::string path;
  std::string existing;
  std::string given;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InstanceTypeMismatch&) const = default;
};

using StateErrors =
    std::tuple<InvalidProjectId, InvalidPath, NameTooLong, InvalidName, IdentityMismatch, InvalidInstanceType,
               UnknownEventType, InvalidEvent, EventTooLarge, OutOfOrder, SandboxExists, SandboxNotFound,
               SandboxDestroyed, CreationInProgress, CreationUnfinished, InstanceTypeMismatch>;

}  // namespace sandboxes
