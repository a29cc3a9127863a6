#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sandboxd/agent/error.hpp"
#include "sandboxd/agent/fd.hpp"

namespace sandboxd::agent {

/// One program to run. Every descriptor but those named here is closed in it; it leads its own session.
struct SpawnRequest {
  std::vector<std::string> argv;  ///< argv[0] is an absolute path
  std::vector<std::string> env;   ///< `NAME=value`
  std::string cwd;
  std::vector<std::pair<int, int>> fds;  ///< ours, theirs; 0, 1 and 2 are /dev/null when not named
  bool controlling_terminal = false;     ///< descriptor 0 becomes the controlling terminal
  bool service = false;                  ///< works for the agent: no limit of the commands is for it
};

/// What a program gets of the container's limits.
struct SpawnLimits {
  std::span<const int> cgroup_fds;
  bool crowded = false;         ///< so many share these groups that a turn on a processor may take long
  std::uint64_t processes = 0;  ///< RLIMIT_NPROC, 0 to leave it
  bool drop_groups = false;     ///< without the agent's supplementary groups
  /// Gives up what the program must not have, in the child, whose memory is still this process's: by system
  /// calls alone as long as they succeed. Whether it could.
  const std::function<bool()>* give_up = nullptr;
};

/// Starts it without ever holding a half-started child: a failed chdir or exec is the caller's error.
Result<pid_t> spawn(const SpawnRequest& request, const SpawnLimits& limits);

struct PipePair {
  UniqueFd read;
  UniqueFd write;
};
/// A pipe, both ends closed on exec, the read end non-blocking.
Result<PipePair> make_pipe();

/// First executable of that name on `path_variable`, or empty.
std::string find_program(std::string_view name, std::string_view path_variable);

/// Which processes a signal is for: `root`'s descendants, and what is left of others in the session that it
/// leads. One that is older than asked for does not count, and neither does what it started since.
struct ProcessTree {
  pid_t root = 0;
  bool include_root = true;
  std::uint64_t started_at_or_after = 0;  ///< clock ticks since boot
  bool orphans = true;                    ///< with those whose own parent has ended
};
struct TreeMember {
  pid_t pid = 0;
  bool runnable = false;  ///< runs, or would with a processor
};
/// Those of them that are alive, zombies aside, but for this process and the container's first.
std::vector<TreeMember> tree_members(const ProcessTree& tree);
/// Signals them and returns how many are alive (zombies aside). Signal 0 only counts.
std::size_t signal_tree(const ProcessTree& tree, int signal);

/// Kills a tree that may be starting processes meanwhile: look by look, until no look finds another one.
class TreeKiller {
 public:
  explicit TreeKiller(const ProcessTree& tree) : tree_(tree) {}
  struct Look {
    std::size_t alive = 0;
    bool found_more = false;  ///< than those that the looks before this one had found
  };
  Look kill();

 private:
  ProcessTree tree_;
  std::set<pid_t> doomed_;
};

/// All processes and threads that this process can see.
std::uint64_t count_threads();

/// Now in the clock ticks that /proc/<pid>/stat counts a start time in.
std::uint64_t boot_ticks();

}  // namespace sandboxd::agent
