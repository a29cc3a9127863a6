// The container's side of a launch: the process that becomes pid 1 inside.
#pragma once

#include <vector>

#include "sandboxd/config.hpp"
#include "sandboxd/rootfs.hpp"
#include "sandboxd/system.hpp"

namespace sandboxd {

struct ContainerPlan {
  RootPlan root;
  int control_listen = -1;
};

// What the two sides say to each other: the container sends `network` with its sockets; the launcher answers
// `go` when ids, groups and (as root) mounts are there, with what it has by control groups. The container
// says `prepared` and reads the second line of standard input, `starting` when it has come, and ends with
// `ready`. An error is `!code`, a newline, text; it is over when nobody sends that line.
inline constexpr std::string_view message_network = "network";
inline constexpr std::string_view message_go = "go";
// Each of these words stands for one descriptor, in this order; those after them are groups that commands
// belong to.
inline constexpr std::string_view message_go_memory = " memory";    ///< the memory events file
inline constexpr std::string_view message_go_pids = " pids";        ///< the number of the commands' processes
inline constexpr std::string_view message_go_service = " service";  ///< the group of the agent's own programs
inline constexpr std::string_view message_prepared = "prepared";
inline constexpr std::string_view message_starting = "starting";
inline constexpr std::string_view message_ready = "ready";
// Afterwards the agent says when it waits for killed commands to end, and when no longer.
inline constexpr std::string_view message_hurry = "hurry";
inline constexpr std::string_view message_calm = "calm";

/// Runs in a fresh child in its own namespaces; never returns.
[[noreturn]] void run_container(const ContainerPlan& plan, Fd launcher);

}  // namespace sandboxd
