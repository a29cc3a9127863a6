#include "sandboxd/container.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "sandboxd/agent/agent.hpp"
#include "sandboxd/etc.hpp"
#include "sandboxd/network.hpp"
#include "sandboxd/privileges.hpp"

namespace sandboxd {
namespace {

SysStatus become_root_inside(const IdentityPlan& identity) {
  // As root there is one group, the disk's reserve, which the agent keeps and its commands lose. Refused
  // where only one id is mapped, and then there are no groups to lose.
  if (!identity.privileged()) (void)::setgroups(0, nullptr);
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0)
    return failed("id_change_refused", "become root inside");
  return {};
}

SysStatus enter_namespaces(const ContainerPlan& plan) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWCGROUP) != 0)
    return failed("unshare_refused", "make a mount namespace");
  if (auto done = mount_at(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr); !done) return done;
  if (!plan.root.identity.privileged()) {
    if (auto done = mount_layers(plan.root); !done) return done;
  }
  if (auto done = enter_root(plan.root); !done) return done;
  return {};
}

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

/// What control groups do for this container, as the launcher's `go` says; the rest is left to rlimits.
struct GroupGrant {
  Fd memory_events;
  Fd process_count;
  Fd service;
  std::vector<Fd> commands;
};

/// Beyond the commands' limit of processes where the kernel counts them with the agent's.
constexpr rlim_t agent_processes = 64;

void set_rlimits(const ContainerPlan& plan, const GroupGrant& grant) {
  const Limits& limits = plan.root.config.limits;
  limit(RLIMIT_CORE, 0);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 65536);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  if (!grant.process_count && limits.pids > 0) limit(RLIMIT_NPROC, limits.pids + agent_processes);
  if (!grant.memory_events && limits.memory_bytes > 0) limit(RLIMIT_DATA, limits.memory_bytes);
  // Root's scratch is a file system of its own size.
  if (!plan.root.identity.privileged() && limits.disk_bytes > 0) limit(RLIMIT_FSIZE, limits.disk_bytes);
}

// Standard streams go to the launcher's error stream: its output is a protocol.
void settle_descriptors(std::vector<int> keep) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) ::dup2(null.get(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  keep.insert(keep.end(), {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  keep.erase(std::remove(keep.begin(), keep.end(), -1), keep.end());
  std::sort(keep.begin(), keep.end());
  int next = 0;
  for (const int fd : keep) {
    if (fd > next) ::syscall(SYS_close_range, next, fd - 1, 0);
    next = fd + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  // What asks for the end waits until the agent reads it: the first process of a namespace would lose it
  // otherwise.
  sigset_t held;
  ::sigemptyset(&held);
  for (const int number : {SIGTERM, SIGINT}) ::sigaddset(&held, number);
  ::sigprocmask(SIG_SETMASK, &held, nullptr);
}

SysResult<GroupGrant> wait_for_go(const Fd& launcher) {
  auto answer = receive_message(launcher.get());
  if (!answer) return tl::make_unexpected(answer.error());
  std::string_view text = answer->text;
  // The launcher is gone or has given up, and has said why itself.
  if (text.substr(0, message_go.size()) != message_go) ::_exit(1);
  GroupGrant grant;
  grant.commands = std::move(answer->descriptors);
  for (const auto& [word, descriptor] :
       {std::pair{message_go_memory, &grant.memory_events}, std::pair{message_go_pids, &grant.process_count},
        std::pair{message_go_service, &grant.service}}) {
    if (text.find(word) == std::string_view::npos || grant.commands.empty()) continue;
    *descriptor = std::move(grant.commands.front());
    grant.commands.erase(grant.commands.begin());
  }
  return grant;
}

// A change of ids clears this, so it is said again after each.
SysStatus follow_launcher() {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return failed("pdeathsig_refused", "follow the launcher's death");
  return {};
}

struct Prepared {
  NetworkSockets sockets;
  GroupGrant grant;
  CallFilter filter;
};

// A shell that starts before the container has its name keeps this one for its prompt: not the machine's.
constexpr std::string_view waiting_hostname = "sandbox";

SysStatus set_hostname(std::string_view name) {
  if (::sethostname(name.data(), name.size()) != 0) return failed("hostname_refused", "sethostname");
  return {};
}

/// All that does not depend on whose the container will be.
SysResult<Prepared> prepare(const ContainerPlan& plan, const Fd& launcher) {
  auto sockets = set_up_network();
  if (!sockets) return tl::make_unexpected(sockets.error());
  std::vector<int> fds{sockets->dns_udp.get(), sockets->dns_tcp.get(), sockets->relay_v4.get()};
  if (sockets->relay_v6) fds.push_back(sockets->relay_v6.get());
  if (auto sent = send_message(launcher.get(), message_network, fds); !sent)
    return tl::make_unexpected(sent.error());
  auto grant = wait_for_go(launcher);
  if (!grant) return tl::make_unexpected(grant.error());
  // The folders above the scratch may be closed to the ids inside, so it is entered before they are taken.
  if (::chdir(plan.root.scratch.c_str()) != 0) return failed("chdir_failed", "enter " + plan.root.scratch);
  if (auto done = become_root_inside(plan.root.identity); !done) return tl::make_unexpected(done.error());
  if (auto done = enter_namespaces(plan); !done) return tl::make_unexpected(done.error());
  if (auto done = set_hostname(waiting_hostname); !done) return tl::make_unexpected(done.error());
  ::umask(022);
  ::setsid();
  set_rlimits(plan, *grant);
  reset_signals();
  if (auto done = follow_launcher(); !done) return tl::make_unexpected(done.error());
  auto filter = CallFilter::make();
  if (!filter) return tl::make_unexpected(filter.error());
  return Prepared{std::move(*sockets), std::move(*grant), std::move(*filter)};
}

SysResult<StartConfig> wait_for_start(const Fd& launcher) {
  if (auto sent = send_message(launcher.get(), message_prepared); !sent)
    return tl::make_unexpected(sent.error());
  const auto text = read_all(STDIN_FILENO, most_config_bytes);
  if (!text) return tl::make_unexpected(text.error());
  // Whoever had it prepared has no use for it any more.
  if (text->empty()) ::_exit(0);
  if (auto sent = send_message(launcher.get(), message_starting); !sent)
    return tl::make_unexpected(sent.error());
  return parse_start_config(*text);
}

SysStatus become_own(const StartConfig& config, const Prepared& prepared) {
  if (auto done = relay_ports(prepared.sockets, config.ports); !done) return done;
  if (auto done = set_hostname(config.hostname); !done) return done;
  if (auto done = write_own_etc(config); !done) return done;
  if (auto done = drop_privileges(); !done) return done;
  hide_from_commands();
  if (auto done = follow_launcher(); !done) return done;
  return prepared.filter.install();
}

// The launcher's own variables may be secrets of the machine; not even this process's memory keeps them.
void forget_environment() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    ::explicit_bzero(*entry, std::strlen(*entry));
  ::clearenv();
}

agent::AgentConfig agent_config(const ContainerPlan& plan, const StartConfig& config, const GroupGrant& grant,
                                int launcher) {
  agent::AgentConfig settings;
  settings.control_listen_fd = plan.control_listen;
  settings.env = {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                  {"HOME", "/root"},
                  {"USER", "root"},
                  {"LOGNAME", "root"},
                  {"SHELL", "/bin/bash"},
                  {"LANG", "C.UTF-8"},
                  {"HOSTNAME", config.hostname}};
  for (const auto& [key, value] : config.env) settings.env[key] = value;
  for (const auto& group : grant.commands) settings.command_cgroup_fds.push_back(group.get());
  settings.service_cgroup_fd = grant.service.get();
  settings.process_count_fd = grant.process_count.get();
  settings.process_limit = plan.root.config.limits.pids;
  settings.disk_reserve = plan.root.identity.privileged();
  settings.hurry = [launcher](bool begins) {
    const std::string_view text = begins ? message_hurry : message_calm;
    (void)!::send(launcher, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  };
  return settings;
}

// Only one that waits has the time for it; the agent starts a shell by itself otherwise.
std::optional<agent::WaitingShell> prepare_shell(const ContainerPlan& plan, const Prepared& prepared) {
  pollfd second_line{STDIN_FILENO, POLLIN, 0};
  if (::poll(&second_line, 1, 0) != 0) return std::nullopt;
  const auto settings = agent_config(plan, StartConfig{}, prepared.grant, -1);
  auto shell = agent::start_waiting_shell(
      settings, [&] { return drop_privileges().has_value() && prepared.filter.install().has_value(); });
  if (!shell) return std::nullopt;
  return std::move(*shell);
}

}  // namespace

void run_container(const ContainerPlan& plan, Fd launcher) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "sandboxd-init");
  forget_environment();
  const auto give_up = [&](const SystemError& error) {
    (void)send_message(launcher.get(), "!" + error.code + "\n" + error.text());
    ::_exit(1);
  };
  const auto prepared = prepare(plan, launcher);
  if (!prepared) give_up(prepared.error());
  auto shell = prepare_shell(plan, *prepared);
  const auto start = wait_for_start(launcher);
  if (!start) give_up(start.error());
  if (auto done = become_own(*start, *prepared); !done) give_up(done.error());
  const auto& grant = prepared->grant;
  const auto settings = agent_config(plan, *start, grant, launcher.get());
  const auto sent = send_message(launcher.get(), message_ready);
  if (!sent) ::_exit(1);
  std::vector<int> keep = settings.command_cgroup_fds;
  keep.push_back(plan.control_listen);
  keep.push_back(launcher.get());
  for (const auto* fd : {&grant.memory_events, &grant.process_count, &grant.service})
    keep.push_back(fd->get());
  if (shell) keep.insert(keep.end(), {shell->control.get(), shell->status.get()});
  settle_descriptors(std::move(keep));
  ::_exit(agent::run_agent(settings, std::move(shell)));
}

}  // namespace sandboxd
