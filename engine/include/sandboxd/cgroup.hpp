// Memory, processes and CPU of a container by control groups, version 2 or 1, where they may be written.
#pragma once

#include <string>
#include <vector>

#include "sandboxd/config.hpp"
#include "sandboxd/system.hpp"

namespace sandboxd {

/// Where one controller's groups can be made.
struct ControllerPlace {
  std::string parent;  ///< directory that groups are made in; empty when there is none
  bool unified = false;
};
struct ControllerPlaces {
  ControllerPlace memory;
  ControllerPlace pids;
  ControllerPlace cpu;
};
[[nodiscard]] ControllerPlaces find_controllers();

/// The groups of one container: the whole, and in it the commands, which the CPU quota is for. What serves
/// them, the agent and its archives, stands beside the commands, so that no number of those starves it.
/// Removed with the container; a launcher that was killed leaves empty directories, which the next launch
/// removes.
class ContainerGroups {
 public:
  ContainerGroups() = default;
  ContainerGroups(ContainerGroups&&) noexcept = default;
  ContainerGroups& operator=(ContainerGroups&&) noexcept = default;
  ContainerGroups(const ContainerGroups&) = delete;
  ContainerGroups& operator=(const ContainerGroups&) = delete;
  ~ContainerGroups() { remove(); }

  [[nodiscard]] static ContainerGroups create(const LaunchConfig& config);

  [[nodiscard]] SysStatus add_agent(pid_t pid) const;
  [[nodiscard]] std::vector<int> command_fds() const;
  /// `cgroup.procs` for the agent's own programs where they would not belong to the container otherwise, or
  /// -1.
  [[nodiscard]] int service_fd() const { return service_procs_.get(); }
  /// File with the number of the commands' processes and threads, or empty.
  [[nodiscard]] const std::string& process_count() const { return process_count_; }
  [[nodiscard]] bool limits_memory() const { return !memory_events_.empty(); }
  [[nodiscard]] bool limits_pids() const { return limits_pids_; }
  [[nodiscard]] bool limits_cpu() const { return limits_cpu_; }
  /// File with an `oom_kill N` line for the commands, or empty.
  [[nodiscard]] const std::string& memory_events() const { return memory_events_; }
  /// Lets the commands run without their quota, each container's weight aside: killed ones need a turn on a
  /// processor to end, and a thousand would wait minutes for a sixteenth of one. The other call takes it
  /// back.
  void lift_cpu_quota();
  void restore_cpu_quota();
  void remove();

 private:
  bool make(const std::string& whole, bool unified, bool holds_agent);
  void limit_memory(const ControllerPlace& place, const std::string& name, const Limits& limits);
  void limit_pids(const ControllerPlace& place, const std::string& name, const Limits& limits);
  void limit_cpu(const ControllerPlace& place, const std::string& name, const Limits& limits);

  std::vector<std::string> directories_;  ///< outer before inner
  std::vector<std::string> agent_groups_;
  std::vector<Fd> command_procs_;
  Fd service_procs_;
  std::string memory_events_;
  std::string process_count_;
  std::string cpu_quota_;     ///< the file of the commands' quota, or empty
  std::string lifted_quota_;  ///< what it held, while it is lifted
  bool limits_pids_ = false;
  bool limits_cpu_ = false;
};

}  // namespace sandboxd
