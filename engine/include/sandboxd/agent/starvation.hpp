#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>

#include "sandboxd/agent/error.hpp"

namespace sandboxd::agent {

/// Whether a command waits for the processor and gets next to nothing of it, because of what else runs in the
/// sandbox. One that waits for anything else is not starved, and neither is one that is only slow.
class StarvationWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of `root` and everything below it.
  explicit StarvationWatch(pid_t root) : root_(root), next_(Clock::now() + kStep) {}
  /// When it has to be asked again.
  [[nodiscard]] Clock::time_point next() const { return next_; }
  /// True once the command has been starved for half a minute. Looks no sooner than it has to.
  [[nodiscard]] bool starved();

 private:
  static constexpr auto kStep = std::chrono::milliseconds(5000);
  struct Account {
    std::uint64_t ran = 0;     ///< nanoseconds on a processor
    std::uint64_t waited = 0;  ///< nanoseconds ready, without one
  };
  pid_t root_;
  Clock::time_point next_;
  std::map<pid_t, Account> accounts_;
  int steps_ = 0;
};

AgentError starved_error();

}  // namespace sandboxd::agent
