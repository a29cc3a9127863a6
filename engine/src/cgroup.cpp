#include "sandboxd/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

namespace sandboxd {
namespace {

constexpr std::string_view prefix = "sandboxd.";

bool has_word(const std::string& list, std::string_view word, char separator) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, separator);) {
    while (!one.empty() && one.back() == '\n') one.pop_back();
    if (one == word) return true;
  }
  return false;
}

// Own group's path in the hierarchy of a controller; an empty controller means the unified one.
std::string own_group(const std::string& memberships, std::string_view controller) {
  std::istringstream lines(memberships);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto names = line.substr(first + 1, second - first - 1);
    const bool match = controller.empty() ? names.empty() : has_word(names, controller, ',');
    if (match) return line.substr(second + 1);
  }
  return {};
}

struct Mount {
  std::string path;
  std::string root;
  std::string options;
  bool unified;
};

std::vector<Mount> cgroup_mounts() {
  std::vector<Mount> mounts;
  std::istringstream lines(read_file("/proc/self/mountinfo").value_or(std::string()));
  for (std::string line; std::getline(lines, line);) {
    const auto separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line.substr(0, separator));
    std::istringstream after(line.substr(separator + 3));
    std::string skip;
    Mount mount;
    before >> skip >> skip >> skip >> mount.root >> mount.path;
    std::string type;
    after >> type >> skip >> mount.options;
    mount.unified = type == "cgroup2";
    if (mount.unified || type == "cgroup") mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::string below_mount(const Mount& mount, std::string group) {
  if (mount.root != "/" && group.substr(0, mount.root.size()) == mount.root)
    group = group.substr(mount.root.size());
  return group == "/" || group.empty() ? mount.path : mount.path + group;
}

// A place of the unified hierarchy that hands the controller to its children: the own group, or the nearest
// above.
std::string unified_parent(const Mount& mount, std::string directory, std::string_view controller) {
  while (directory.size() >= mount.path.size()) {
    const std::string control = directory + "/cgroup.subtree_control";
    const auto given = read_file(control);
    if (given && ::access(directory.c_str(), W_OK) == 0) {
      if (has_word(*given, controller, ' ')) return directory;
      const auto available = read_file(directory + "/cgroup.controllers");
      // Refused where processes sit in the group itself, and then a group above may do.
      if (available && has_word(*available, controller, ' ') && poke(control, "+" + std::string(controller)))
        return directory;
    }
    const auto slash = directory.rfind('/');
    if (slash == std::string::npos || slash == 0) break;
    directory.resize(slash);
  }
  return {};
}

ControllerPlace find_controller(const std::vector<Mount>& mounts, const std::string& memberships,
                                const char* controller) {
  for (const auto& mount : mounts) {
    if (mount.unified || !has_word(mount.options, controller, ',')) continue;
    const auto directory = below_mount(mount, own_group(memberships, controller));
    if (::access(directory.c_str(), W_OK) == 0) return {directory, false};
  }
  for (const auto& mount : mounts) {
    if (!mount.unified) continue;
    auto parent = unified_parent(mount, below_mount(mount, own_group(memberships, "")), controller);
    if (!parent.empty()) return {std::move(parent), true};
  }
  return {};
}

void remove_stale(const std::string& parent) {
  DIR* directory = ::opendir(parent.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10));
    // A number that is in use again keeps an empty group a while longer, which costs nothing.
    if (::kill(pid, 0) == 0 || errno == EPERM) continue;
    std::string group = parent;
    group.append("/").append(name);
    for (const char* inner : {"/commands", "/agent", ""}) ::rmdir((group + inner).c_str());
  }
  ::closedir(directory);
}

}  // namespace

ControllerPlaces find_controllers() {
  const auto mounts = cgroup_mounts();
  const auto memberships = read_file("/proc/self/cgroup").value_or(std::string());
  return {find_controller(mounts, memberships, "memory"), find_controller(mounts, memberships, "pids"),
          find_controller(mounts, memberships, "cpu")};
}

bool ContainerGroups::make(const std::string& whole, bool unified, bool holds_agent) {
  if (std::find(directories_.begin(), directories_.end(), whole) != directories_.end()) return true;
  if (::mkdir(whole.c_str(), 0755) != 0) return false;
  directories_.push_back(whole);
  std::string agent = whole;
  if (unified) {
    for (const char* controller : {"+memory", "+pids", "+cpu"})
      (void)poke(whole + "/cgroup.subtree_control", controller);
    agent = whole + "/agent";
    if (::mkdir(agent.c_str(), 0755) != 0) return false;
    directories_.push_back(agent);
  }
  const std::string commands = whole + "/commands";
  if (::mkdir(commands.c_str(), 0755) != 0) return false;
  directories_.push_back(commands);
  Fd procs(::open((commands + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs) return false;
  command_procs_.push_back(std::move(procs));
  if (holds_agent) agent_groups_.push_back(agent + "/cgroup.procs");
  return true;
}

void ContainerGroups::limit_memory(const ControllerPlace& place, const std::string& name,
                                   const Limits& limits) {
  if (limits.memory_bytes == 0 || place.parent.empty()) return;
  const std::string whole = place.parent + "/" + name;
  // The agent keeps a reserve, so that a hog is killed rather than the agent that has to say so.
  const std::uint64_t reserve = std::min<std::uint64_t>(limits.memory_bytes / 8, std::uint64_t{32} << 20U);
  const std::string commands = std::to_string(limits.memory_bytes - reserve);
  const std::string file = place.unified ? "/memory.max" : "/memory.limit_in_bytes";
  if (!make(whole, place.unified, true) || !poke(whole + file, std::to_string(limits.memory_bytes)) ||
      !poke(whole + "/commands" + file, commands)) {
    return;
  }
  memory_events_ = whole + "/commands" + (place.unified ? "/memory.events" : "/memory.oom_control");
  if (place.unified) (void)poke(whole + "/memory.swap.max", "0");
  if (!place.unified) (void)poke(whole + "/commands/memory.memsw.limit_in_bytes", commands);
}

void ContainerGroups::limit_pids(const ControllerPlace& place, const std::string& name,
                                 const Limits& limits) {
  if (limits.pids == 0 || place.parent.empty()) return;
  const std::string whole = place.parent + "/" + name;
  constexpr std::uint64_t agent_reserve = 64;
  limits_pids_ = make(whole, place.unified, true) &&
                 poke(whole + "/pids.max", std::to_string(limits.pids + agent_reserve)) &&
                 poke(whole + "/commands/pids.max", std::to_string(limits.pids));
  if (limits_pids_) process_count_ = whole + "/commands/pids.current";
}

void ContainerGroups::limit_cpu(const ControllerPlace& place, const std::string& name, const Limits& limits) {
  if ((limits.cpu_weight == 0 && limits.cpu_quota <= 0) || place.parent.empty()) return;
  const std::string whole = place.parent + "/" + name;
  constexpr double period = 100000;
  const auto quota = std::to_string(static_cast<std::uint64_t>(std::max(1000.0, limits.cpu_quota * period)));
  // In version 1, where every controller has a tree of its own, the agent stays out of this one: a move into
  // it costs more than the agent does. Its programs, which archive, join the whole.
  bool done = make(whole, place.unified, place.unified);
  if (done && limits.cpu_weight > 0) {
    const auto shares = std::to_string(std::max<std::uint64_t>(2, limits.cpu_weight * 1024 / 100));
    done = place.unified ? poke(whole + "/cpu.weight", std::to_string(limits.cpu_weight)).has_value()
                         : poke(whole + "/cpu.shares", shares).has_value();
  }
  if (done && place.unified) (void)poke(whole + "/agent/cpu.weight", "1000");
  if (done && !place.unified)
    service_procs_ = Fd(::open((whole + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (done && limits.cpu_quota > 0) {
    const std::string file = whole + (place.unified ? "/commands/cpu.max" : "/commands/cpu.cfs_quota_us");
    done = poke(file, place.unified ? quota + " 100000" : quota).has_value();
    if (done) cpu_quota_ = file;
  }
  limits_cpu_ = done;
}

ContainerGroups ContainerGroups::create(const LaunchConfig& config) {
  ContainerGroups groups;
  const auto places = find_controllers();
  const pid_t pid = ::getpid();
  const std::string name = std::string(prefix) + std::to_string(pid) + "." + config.id;
  std::vector<std::string> seen;
  for (const auto* place : {&places.memory, &places.pids, &places.cpu}) {
    if (place->parent.empty() || std::find(seen.begin(), seen.end(), place->parent) != seen.end()) continue;
    remove_stale(place->parent);
    seen.push_back(place->parent);
  }
  groups.limit_memory(places.memory, name, config.limits);
  groups.limit_pids(places.pids, name, config.limits);
  groups.limit_cpu(places.cpu, name, config.limits);
  return groups;
}

SysStatus ContainerGroups::add_agent(pid_t pid) const {
  for (const auto& group : agent_groups_) {
    if (auto done = poke(group, std::to_string(pid)); !done) return done;
  }
  return {};
}

std::vector<int> ContainerGroups::command_fds() const {
  std::vector<int> fds;
  for (const auto& procs : command_procs_) fds.push_back(procs.get());
  return fds;
}

void ContainerGroups::lift_cpu_quota() {
  if (cpu_quota_.empty() || !lifted_quota_.empty()) return;
  auto held = read_file(cpu_quota_);
  const bool unified = cpu_quota_.ends_with("/cpu.max");
  if (held && poke(cpu_quota_, unified ? "max" : "-1")) lifted_quota_ = std::move(*held);
}

void ContainerGroups::restore_cpu_quota() {
  if (!lifted_quota_.empty() && poke(cpu_quota_, lifted_quota_)) lifted_quota_.clear();
}

void ContainerGroups::remove() {
  command_procs_.clear();
  service_procs_.reset();
  for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
    // The last process may still be on its way out.
    for (int attempt = 0; ::rmdir(directory->c_str()) != 0 && errno == EBUSY && attempt < 50; ++attempt)
      ::usleep(2000);
  }
  directories_.clear();
}

}  // namespace sandboxd
