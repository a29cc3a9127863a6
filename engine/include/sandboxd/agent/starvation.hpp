#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>

#include "sandboxd/agent/error.hpp"
#include "sandboxd/agent/spawn.hpp"

namespace sandboxd::agent {

/// Whether a command waits for the processor and gets next to nothing of it, because of what else runs in the
/// sandbox. One that waits for anything else is not starved, and neither is one that is only slow. Half a
/// minute decides, and less than that among so many processes that no command could ever get done.
class StarvationWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of the shell, and of what it has started from then on that still hangs together with it: what an earlier
  /// command left behind is what it may starve of.
  StarvationWatch(pid_t shell, std::uint64_t since)
      : tree_{shell, true, since, false}, next_(Clock::now() + kStep) {}
  /// When it has to be asked again.
  [[nodiscard]] Clock::time_point next() const { return next_; }
  /// True once the command has been starved for too long. Looks no sooner than it has to.
  [[nodiscard]] bool starved();

 private:
  static constexpr auto kStep = std::chrono::milliseconds(2500);
  ProcessTree tree_;
  Clock::time_point next_;
  std::map<pid_t, std::uint64_t> ran_;  ///< nanoseconds on a processor
  int score_ = 0;
};

AgentError starved_error();

}  // namespace sandboxd::agent
