#include "sandboxd/agent/spawn.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace sandboxd::agent {
namespace {

enum class Stage { none, groups, descriptors, terminal, cwd, privileges, exec };

/// Everything that the child needs, made ready before the fork: it may only make system calls.
struct ChildPlan {
  const char* const* argv = nullptr;
  const char* const* env = nullptr;
  const char* cwd = nullptr;
  const std::pair<int, int>* fds = nullptr;
  std::size_t fd_count = 0;
  std::span<const int> cgroups;
  rlim_t processes = 0;
  bool drop_groups = false;
  const std::function<bool()>* give_up = nullptr;
  int null_fd = -1;
  bool controlling_terminal = false;
  bool join_late = false;
  volatile bool traced = false;
  volatile int error_number = 0;
  volatile Stage stage = Stage::none;
};

constexpr int kMaximumFds = 8;
constexpr int kHighFd = 512;

[[noreturn]] void child_fail(ChildPlan& plan, Stage stage) {
  plan.stage = stage;
  plan.error_number = errno;
  ::_exit(127);
}

void child_descriptors(ChildPlan& plan) {
  std::array<int, kMaximumFds> high{};
  bool standard[3] = {false, false, false};
  for (std::size_t index = 0; index < plan.fd_count; ++index) {
    // First out of the way: a target may be another one's source.
    high[index] = ::fcntl(plan.fds[index].first, F_DUPFD_CLOEXEC, kHighFd);
    if (high[index] < 0) child_fail(plan, Stage::descriptors);
  }
  for (std::size_t index = 0; index < plan.fd_count; ++index) {
    const int target = plan.fds[index].second;
    if (::dup2(high[index], target) < 0) child_fail(plan, Stage::descriptors);
    if (target < 3) standard[target] = true;
  }
  for (int target = 0; target < 3; ++target) {
    if (!standard[target] && ::dup2(plan.null_fd, target) < 0) child_fail(plan, Stage::descriptors);
  }
}

// Best effort: a group that is gone must not keep commands from running.
void join_groups(std::span<const int> cgroups, pid_t pid) {
  std::array<char, 24> text{};
  char* end = std::to_chars(text.data(), text.data() + text.size() - 1, pid).ptr;
  *end++ = '\n';
  for (const int group : cgroups)
    (void)!::write(group, text.data(), static_cast<std::size_t>(end - text.data()));
}

// A traced child stops when it has its program and before that runs. It joins the groups only there: in a
// group of a thousand that share a fraction of a processor, its turn to go on and call exec would come after
// half a minute, and until it has done so the agent stands still. Signals wait until then, since each would
// stop it before.
void ask_to_be_traced(ChildPlan& plan) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGTRAP);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  plan.traced = ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
  if (plan.traced) return;
  join_groups(plan.cgroups, 0);
  ::sigemptyset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

void release_into_groups(pid_t pid, const ChildPlan& plan) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WSTOPPED | WNOWAIT) < 0 && errno == EINTR) {
  }
  // Whoever killed it in between: its end is for the loop to collect.
  if (info.si_code != CLD_TRAPPED) return;
  join_groups(plan.cgroups, pid);
  const std::uint64_t no_signals = 0;
  ::ptrace(PTRACE_SETSIGMASK, pid, sizeof no_signals, &no_signals);
  const long pending = info.si_status == SIGTRAP ? 0 : info.si_status;
  ::ptrace(PTRACE_DETACH, pid, nullptr, pending);
}

[[noreturn]] void child(ChildPlan& plan) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  if (!plan.join_late) join_groups(plan.cgroups, 0);
  // The library's setgroups would stop threads of the agent, whose memory this still is.
  if (plan.drop_groups && ::syscall(SYS_setgroups, 0, nullptr) < 0) child_fail(plan, Stage::groups);
  const rlimit processes{plan.processes, plan.processes};
  if (plan.processes != 0) ::setrlimit(RLIMIT_NPROC, &processes);
  // Sockets that a library accepted or opened are not marked as ours alone; a command must hold none of them.
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  child_descriptors(plan);
  if (plan.controlling_terminal && ::ioctl(0, TIOCSCTTY, 0) < 0) child_fail(plan, Stage::terminal);
  if (plan.cwd != nullptr && ::chdir(plan.cwd) < 0) child_fail(plan, Stage::cwd);
  if (plan.give_up != nullptr && !(*plan.give_up)()) child_fail(plan, Stage::privileges);
  if (plan.join_late) ask_to_be_traced(plan);
  ::execve(plan.argv[0], const_cast<char* const*>(plan.argv), const_cast<char* const*>(plan.env));
  child_fail(plan, Stage::exec);
}

/// vfork: the parent waits until the child has its program or has said why not. Nothing but `child` runs in
/// between.
[[gnu::noinline]] pid_t fork_child(ChildPlan& plan) {
  // NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): posix_spawn joins no control group.
  const pid_t pid = ::vfork();
  // NOLINTNEXTLINE(clang-analyzer-unix.Vfork): it makes system calls alone, and ends in exec or _exit.
  if (pid == 0) child(plan);
  return pid;
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(text.c_str());
  out.push_back(nullptr);
  return out;
}

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start = 0;
  std::uint64_t threads = 0;
  char state = '?';
};

/// Reads /proc/<pid>/stat: the command's name may hold blanks and parentheses, so fields count from the last
/// one.
bool read_entry(pid_t pid, ProcessEntry& entry) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 1024> text{};
  const ssize_t count = ::read(fd.get(), text.data(), text.size());
  if (count <= 0) return false;
  std::string_view line(text.data(), static_cast<std::size_t>(count));
  const std::size_t paren = line.rfind(')');
  if (paren == std::string_view::npos || paren + 2 >= line.size()) return false;
  line.remove_prefix(paren + 2);
  entry.pid = pid;
  entry.state = line.front();
  for (int field = 3; field <= 22 && !line.empty(); ++field) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const auto parse = [&](auto& value) { std::from_chars(line.data(), line.data() + end, value); };
    if (field == 4) parse(entry.parent);
    if (field == 6) parse(entry.session);
    if (field == 20) parse(entry.threads);
    if (field == 22) parse(entry.start);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return true;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc"), &::closedir);
  if (!directory) return out;
  while (const dirent* item = ::readdir(directory.get())) {
    pid_t pid = 0;
    const std::string_view name = item->d_name;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    ProcessEntry entry;
    if (read_entry(pid, entry)) out.push_back(entry);
  }
  return out;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request, const SpawnLimits& limits) {
  if (request.argv.empty() || request.fds.size() > kMaximumFds) {
    return fail(AgentError{"INTERNAL_ERROR", "spawn: nothing to run, or too many descriptors"});
  }
  const auto argv = pointers(request.argv);
  const auto env = pointers(request.env);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ChildPlan plan;
  plan.argv = argv.data();
  plan.env = env.data();
  plan.cwd = request.cwd.empty() ? nullptr : request.cwd.c_str();
  plan.fds = request.fds.data();
  plan.fd_count = request.fds.size();
  plan.cgroups = limits.cgroup_fds;
  plan.join_late = limits.crowded && !limits.cgroup_fds.empty();
  plan.processes = limits.processes;
  plan.drop_groups = limits.drop_groups;
  plan.give_up = limits.give_up;
  plan.null_fd = null.get();
  plan.controlling_terminal = request.controlling_terminal;
  const pid_t pid = fork_child(plan);
  if (pid < 0) return fail(file_error(errno, "cannot start a process", request.argv[0], "process.start"));
  if (plan.error_number == 0) {
    if (plan.traced) release_into_groups(pid, plan);
    return pid;
  }
  ::waitpid(pid, nullptr, 0);
  const int number = plan.error_number;
  if (plan.stage == Stage::cwd) {
    auto error = file_error(number, "cannot use the working directory", request.cwd, "command.execute");
    error.context["cwd"] = request.cwd;
    return fail(std::move(error));
  }
  auto error = file_error(number, "cannot run", request.argv[0], "command.execute");
  if (number == ENOENT) error.code = "COMMAND_NOT_FOUND";
  error.context["command"] = request.argv[0];
  return fail(std::move(error));
}

Result<PipePair> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return fail(file_error(errno, "cannot make a pipe", ""));
  PipePair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) return fail(file_error(errno, "cannot set up a pipe", ""));
  return pair;
}

std::string find_program(std::string_view name, std::string_view path_variable) {
  while (!path_variable.empty()) {
    const std::size_t end = std::min(path_variable.find(':'), path_variable.size());
    std::string candidate = std::string(path_variable.substr(0, end)) + "/" + std::string(name);
    if (end != 0 && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    path_variable.remove_prefix(std::min(end + 1, path_variable.size()));
  }
  return {};
}

std::uint64_t count_threads() {
  std::uint64_t count = 0;
  for (const auto& entry : all_processes()) count += entry.threads;
  return count;
}

namespace {

std::vector<ProcessEntry> live_tree(const ProcessTree& tree) {
  const auto processes = all_processes();
  std::unordered_multimap<pid_t, pid_t> children;
  for (const auto& entry : processes) children.emplace(entry.parent, entry.pid);
  std::unordered_set<pid_t> members;
  std::unordered_map<pid_t, const ProcessEntry*> by_pid;
  for (const auto& entry : processes) by_pid.emplace(entry.pid, &entry);
  std::vector<pid_t> open = {tree.root};
  for (const auto& entry : processes) {
    if (!tree.orphans || entry.session != tree.root || entry.pid == tree.root) continue;
    const auto parent = by_pid.find(entry.parent);
    if (parent == by_pid.end() || parent->second->session != tree.root) open.push_back(entry.pid);
  }
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    const auto entry = by_pid.find(pid);
    const bool too_old = entry != by_pid.end() && entry->second->start < tree.started_at_or_after;
    if ((too_old && pid != tree.root) || !members.insert(pid).second) continue;
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) open.push_back(child->second);
  }
  std::vector<ProcessEntry> alive;
  for (const auto& entry : processes) {
    if (!members.contains(entry.pid) || entry.state == 'Z' || entry.state == 'X') continue;
    if (entry.pid == tree.root && !tree.include_root) continue;
    if (entry.pid <= 1 || entry.pid == ::getpid()) continue;
    alive.push_back(entry);
  }
  return alive;
}

}  // namespace

std::vector<TreeMember> tree_members(const ProcessTree& tree) {
  std::vector<TreeMember> out;
  for (const auto& entry : live_tree(tree)) out.push_back({entry.pid, entry.state == 'R'});
  return out;
}

std::size_t signal_tree(const ProcessTree& tree, int signal) {
  const auto alive = live_tree(tree);
  for (const auto& entry : alive) {
    if (signal == 0) break;
    ::kill(entry.pid, signal);
    if (signal != SIGKILL && entry.state == 'T') ::kill(entry.pid, SIGCONT);
  }
  return alive.size();
}

TreeKiller::Look TreeKiller::kill() {
  Look look;
  for (const auto& entry : live_tree(tree_)) {
    ::kill(entry.pid, SIGKILL);
    ++look.alive;
    look.found_more = doomed_.insert(entry.pid).second || look.found_more;
  }
  return look;
}

std::uint64_t boot_ticks() {
  std::timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1000000000U;
}

}  // namespace sandboxd::agent
