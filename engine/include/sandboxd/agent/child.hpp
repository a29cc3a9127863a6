#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sandboxd/agent/runtime.hpp"

namespace sandboxd::agent {

/// Reads one end of a pipe as it fills, and tells the notifier. Pauses when nobody takes what it has read.
class OutputPump : public std::enable_shared_from_this<OutputPump> {
 public:
  OutputPump(const asio::any_io_executor& executor, UniqueFd fd, std::shared_ptr<Notifier> changed);
  void start();
  /// What arrived since the last call.
  std::string take();
  [[nodiscard]] const std::string& peek() const { return buffer_; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// Reads what is there now, without waiting.
  void drain();
  /// Reads on to the end and throws it away, so that whoever still holds the pipe never blocks on it.
  void discard();
  /// Most that is buffered before reading pauses.
  void set_limit(std::size_t limit) { limit_ = limit; }

 private:
  void arm();

  FdWatch watch_;
  std::shared_ptr<Notifier> changed_;
  std::string buffer_;
  std::size_t limit_ = std::size_t{8} << 20U;
  bool ended_ = false;
  bool armed_ = false;
  bool discarding_ = false;
};

/// How a finished command went.
struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
  bool timed_out = false;
};

/// Limits of one command whose output is collected.
struct CommandLimits {
  std::optional<std::chrono::milliseconds> timeout;
  std::size_t output_bytes = std::size_t{128} << 20U;
};

/// The line on standard error of a command that its timeout ended.
std::string timeout_line(std::chrono::milliseconds timeout);
/// A command that printed more than can be answered in one piece.
AgentError output_too_large(const std::string& command, std::size_t limit);
/// A command whose caller hung up.
AgentError interrupted(const std::string& command);

/// A program that the agent itself started, with its output.
class Child : public std::enable_shared_from_this<Child> {
 public:
  explicit Child(Runtime& runtime);
  /// Starts `argv` with empty input. `extra_fds` are handed over as (ours, theirs).
  static Result<std::shared_ptr<Child>> start(Runtime& runtime, SpawnRequest request);
  /// Starts a bash that runs `command`.
  static Result<std::shared_ptr<Child>> shell(Runtime& runtime, const std::string& command, std::string cwd,
                                              const std::map<std::string, std::string>& env,
                                              bool service = false);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// As a shell reports it, once it has ended.
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }
  [[nodiscard]] std::optional<int> wait_status() const { return wait_status_; }
  OutputPump& out() { return *out_; }
  OutputPump& err() { return *err_; }
  Notifier& changed() { return *changed_; }

  /// Ended, and its output read to the end, or held open by something it left running for longer than a
  /// moment.
  [[nodiscard]] bool settled() const;
  /// When `settled` may become true by time alone.
  [[nodiscard]] std::optional<Clock::time_point> settles_at() const;
  /// Ends the whole tree in the background: TERM, then KILL.
  void terminate();
  /// Waits for the end; a timeout or a caller that is gone ends the tree.
  Task<Result<CommandResult>> collect(CommandLimits limits, Cancellation* cancellation, std::string command);
  /// Lets what remains of the output run to nowhere.
  void abandon_output();

 private:
  Runtime& runtime_;
  pid_t pid_ = 0;
  std::optional<int> wait_status_;
  std::optional<int> exit_code_;
  Clock::time_point ended_at_{};
  std::shared_ptr<Notifier> changed_;
  std::shared_ptr<OutputPump> out_;
  std::shared_ptr<OutputPump> err_;
  bool terminating_ = false;
};

}  // namespace sandboxd::agent
