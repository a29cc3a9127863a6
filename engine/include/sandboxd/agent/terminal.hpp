#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sandboxd/agent/app.hpp"

namespace sandboxd::agent {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// One shell on a pseudo terminal. It keeps what it printed last, for whoever connects again.
class Terminal : public std::enable_shared_from_this<Terminal> {
 public:
  Terminal(Runtime& runtime, UniqueFd master);
  static Result<std::shared_ptr<Terminal>> open(Runtime& runtime, const SpawnRequest& shell,
                                                TerminalSize size);

  void resize(TerminalSize size);
  Task<void> input(std::string bytes);
  void end();
  Notifier& changed() { return changed_; }
  /// Output from `offset` on; moves `offset` past it. What fell out of memory is skipped.
  std::string output(std::uint64_t& offset) const;
  /// Wait status of the shell once all its output is in.
  [[nodiscard]] std::optional<int> ended() const { return output_ended_ ? wait_status_ : std::nullopt; }

 private:
  void arm();
  void read_output();

  Runtime& runtime_;
  FdWatch master_;
  Notifier changed_;
  pid_t pid_ = 0;
  std::string recent_;
  std::uint64_t total_ = 0;
  std::optional<int> wait_status_;
  bool output_ended_ = false;
};

/// The terminals, one a session.
class Terminals {
 public:
  explicit Terminals(Runtime& runtime) : runtime_(runtime) {}
  Task<Result<std::shared_ptr<Terminal>>> get(App& app, const std::string& session_id, std::string shell,
                                              TerminalSize size);
  void end(const std::string& session_id);

 private:
  Runtime& runtime_;
  std::map<std::string, std::shared_ptr<Terminal>> terminals_;
};

}  // namespace sandboxd::agent
