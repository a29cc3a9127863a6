#pragma once

#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

/// A method of the SDK that our classes do not offer, because it cannot keep what this system promises.
struct MethodFenced {
  static constexpr ErrorInfo info{
      "method_fenced", 405, false,
      "A method of the SDK that sandboxes do not offer; the message names what to use."};
  std::string method;
  std::string advice;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const MethodFenced&) const = default;
};

struct ContainerStartFailed {
  static constexpr ErrorInfo info{"container_start_failed", 503, true,
                                  "The sandbox's container did not start."};
  std::string path;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const ContainerStartFailed&) const = default;
};

struct WorkspaceRestoreFailed {
  static constexpr ErrorInfo info{"workspace_restore_failed", 503, true,
                                  "The newest snapshot could not be restored; it is kept, and nothing ran."};
  std::string path;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const WorkspaceRestoreFailed&) const = default;
};

struct SetUpFailed {
  static constexpr ErrorInfo info{"set_up_failed", 503, true,
                                  "The container runs, but its session or environment could not be set up."};
  std::string path;
  std::string step;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SetUpFailed&) const = default;
};

struct TearDownFailed {
  static constexpr ErrorInfo info{"tear_down_failed", 503, true, "The container could not be destroyed."};
  std::string path;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const TearDownFailed&) const = default;
};

/// A sleep or restart that was asked for ended without a snapshot: what it would have kept is lost, and the
/// caller is told.
struct SnapshotLost {
  static constexpr ErrorInfo info{"snapshot_failed", 503, false,
                                  "The workspace could not be kept; the last good snapshot counts."};
  std::string path;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SnapshotLost&) const = default;
};

/// The command was carried out, but its completion is not on the stream yet. It is kept and appended later.
struct StreamUnavailable {
  static constexpr ErrorInfo info{"stream_unavailable", 503, true,
                                  "A completion could not be appended to the sandbox's stream yet."};
  std::string path;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const StreamUnavailable&) const = default;
};

/// The SDK's own words begin the message: what was written for it looks for them.
struct ContainersNotEnabled {
  static constexpr ErrorInfo info{"containers_not_enabled", 503, false, "Nothing plays containers here."};
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const ContainersNotEnabled&) const = default;
};

using LifecycleErrors =
    std::tuple<MethodFenced, ContainersNotEnabled, ContainerStartFailed, WorkspaceRestoreFailed, SetUpFailed,
               TearDownFailed, SnapshotLost, StreamUnavailable>;

}  // namespace sandboxes
