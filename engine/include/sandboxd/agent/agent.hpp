#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sandboxd/agent/error.hpp"
#include "sandboxd/agent/fd.hpp"

namespace sandboxd::agent {

/// What the launcher hands to the agent when it becomes the container's first process.
struct AgentConfig {
  /// Listening unix socket, made before the container started. The agent takes it over and closes it.
  int control_listen_fd = -1;
  /// Default directory of commands and of relative paths.
  std::string workspace = "/workspace";
  /// Environment of every command, below the session's and the command's own.
  std::map<std::string, std::string> env;
  /// What `GET /api/version` answers; the SDK compares it with its own version.
  std::string version = "0.12.10";
  /// Private directory (mode 0700) for the pipes between the agent and its shells.
  std::string run_directory = "/run/sandboxd";
  /// Certificate authority that intercepted HTTPS is signed with; commands are told about it when it exists.
  std::string ca_certificate = "/etc/cloudflare/certs/cloudflare-containers-ca.crt";
  /// Bundle that holds the system's certificates and the one above.
  std::string ca_bundle = "/etc/ssl/certs/ca-certificates.crt";
  /// Open for writing, `cgroup.procs` of each hierarchy that commands (and not the agent) belong to.
  std::vector<int> command_cgroup_fds;
  /// The same for the agent's own programs, where they belong to a group that the agent is not in.
  int service_cgroup_fd = -1;
  /// Most processes and threads that commands may have, 0 for no limit. Without a file of their number they
  /// are counted, and each command gets the limit as its own.
  std::uint64_t process_limit = 0;
  int process_count_fd = -1;
  /// The agent has a group that may use the disk's reserve; commands must not have it.
  bool disk_reserve = false;
  /// Asks for processor time beyond the commands' quota while killed commands have yet to end.
  std::function<void(bool begins)> hurry;
  /// Told about every reaped process that the agent did not start itself.
  std::function<void(pid_t, int)> on_foreign_exit;
};

/// The shell of the first session, started before the agent runs.
struct WaitingShell {
  pid_t pid = 0;
  std::string directory;  ///< of its session's pipes
  UniqueFd control;
  UniqueFd status;
  std::map<std::string, std::string> env;
};

/// Starts it with the environment that the configuration gives so far; what is added later is told to it.
/// `give_up` is for privileges that this process still has and commands must not have: see SpawnLimits.
Result<WaitingShell> start_waiting_shell(const AgentConfig& config, const std::function<bool()>& give_up);

/// Serves the control API and reaps children until SIGTERM or SIGINT; returns the exit status of the
/// container. Meant to be pid 1 of its namespace; as any other process it looks after its own children only.
int run_agent(const AgentConfig& config, std::optional<WaitingShell> shell = std::nullopt);

}  // namespace sandboxd::agent
