#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandboxd/agent/child.hpp"
#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/fd.hpp"

namespace sandboxd::agent {

/// What a process has printed, in the order it came. Beyond a quarter of a megabyte it lies in an unlinked
/// file.
class OutputLog {
 public:
  enum class Stream : std::uint8_t { out, err };
  struct Piece {
    Stream stream = Stream::out;
    std::string text;
  };
  void append(Stream stream, std::string_view text);
  /// Up to `limit` bytes from `offset` on, of one stream; empty at the end.
  [[nodiscard]] Piece read(std::uint64_t offset, std::size_t limit) const;
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::string all(Stream stream) const;

 private:
  struct Segment {
    std::uint64_t start;
    Stream stream;
  };
  void spill();
  [[nodiscard]] std::string bytes(std::uint64_t offset, std::size_t length) const;

  std::vector<Segment> segments_;
  std::string memory_;
  UniqueFd file_;
  std::uint64_t size_ = 0;
};

/// A background command and all that is known of it.
struct Process {
  std::string id;
  CommandRequest request;
  std::shared_ptr<Child> child;
  std::string started_at;
  std::string ended_at;
  std::optional<int> exit_code;  ///< once its output is complete
  bool killed = false;
  OutputLog log;
  std::unique_ptr<Notifier> changed;

  [[nodiscard]] std::string_view status() const;
  [[nodiscard]] Json describe() const;
};

/// The container's background processes. They belong to no session and outlive every call.
class Processes {
 public:
  explicit Processes(Runtime& runtime) : runtime_(runtime) {}

  Task<Result<std::shared_ptr<Process>>> start(App& app, CommandRequest request, std::string id);
  [[nodiscard]] Result<std::shared_ptr<Process>> find(const std::string& id) const;
  [[nodiscard]] std::vector<std::shared_ptr<Process>> all() const;
  /// Ends its whole tree and waits until it is gone; a finished process keeps its result.
  Task<void> kill(std::shared_ptr<Process> process);

 private:
  Task<void> follow(std::shared_ptr<Process> process);
  void forget_oldest();

  Runtime& runtime_;
  std::map<std::string, std::shared_ptr<Process>> processes_;
  std::deque<std::string> order_;
};

}  // namespace sandboxd::agent
