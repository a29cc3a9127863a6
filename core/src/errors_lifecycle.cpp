#include "sandboxes/error.hpp"

namespace sandboxes {

std::string MethodFenced::message() const {
  return method + " is not offered by sandboxes: " + advice;
}
Details MethodFenced::details() const {
  return {{"method", method}, {"advice", advice}};
}

std::string ContainersNotEnabled::message() const {
  return "Container is not enabled: SANDBOX_ENGINE is none. Nothing was created and nothing ran; set "
         "SANDBOX_ENGINE=embedded (Linux) or SANDBOX_ENGINE=docker and start the server again.";
}
Details ContainersNotEnabled::details() const {
  return {{"engine", std::string("none")}};
}

std::string ContainerStartFailed::message() const {
  return "The container of " + path + " did not start: " + reason + ". Nothing ran; try again.";
}
Details ContainerStartFailed::details() const {
  return {{"path", path}, {"reason", reason}};
}

std::string WorkspaceRestoreFailed::message() const {
  return "The newest snapshot of " + path + " could not be restored: " + reason +
         ". The snapshot is kept and nothing ran; try again.";
}
Details WorkspaceRestoreFailed::details() const {
  return {{"path", path}, {"reason", reason}};
}

std::string SetUpFailed::message() const {
  return path + " could not be set up (" + step + "): " + reason + ". Nothing ran; try again.";
}
Details SetUpFailed::details() const {
  return {{"path", path}, {"step", step}, {"reason", reason}};
}

std::string TearDownFailed::message() const {
  return "The container of " + path + " could not be destroyed: " + reason + ". Try again.";
}
Details TearDownFailed::details() const {
  return {{"path", path}, {"reason", reason}};
}

std::string SnapshotLost::message() const {
  return "The workspace of " + path + " could not be kept: " + reason +
         ". The container is gone; the next command wakes the sandbox from its last good snapshot.";
}
Details SnapshotLost::details() const {
  return {{"path", path}, {"reason", reason}};
}

std::string StreamUnavailable::message() const {
  return "What was asked of " + path + " was done, but its completion is not on the stream yet: " + reason +
         ". It is kept and appended with the next command; try again.";
}
Details StreamUnavailable::details() const {
  return {{"path", path}, {"reason", reason}};
}

}  // namespace sandboxes
