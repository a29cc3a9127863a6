#include "sandboxd/launcher.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "sandboxd/cgroup.hpp"
#include "sandboxd/container.hpp"
#include "sandboxd/etc.hpp"
#include "sandboxd/supervisor.hpp"

namespace sandboxd {
namespace {

using Json = nlohmann::json;

constexpr unsigned long namespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

void say(const Json& line) {
  (void)write_all(STDOUT_FILENO, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

int report_failure(const SystemError& error) {
  say({{"exit", 1}, {"reason", error.code}, {"message", error.text()}});
  return 1;
}

// A socket's path may be longer than sun_path: it goes by a descriptor of its directory.
SysResult<Fd> listen_control(const Fd& directory) {
  return listen_privately("/proc/self/fd/" + std::to_string(directory.get()) + "/control.sock",
                          "control.sock in runtimeDir");
}

// clone with fork's meaning; glibc has no call for it. The caller has one thread only.
SysResult<pid_t> fork_into_namespaces() {
  const long pid = ::syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) {
    const int number = errno;
    std::string what = "make user, pid and network namespaces";
    if (number == EPERM || number == ENOSPC) {
      what +=
          " (user namespaces are off: see sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces "
          "and "
          "kernel.apparmor_restrict_unprivileged_userns; `sandboxd doctor` says which)";
    }
    return failed("namespaces_refused", what, number);
  }
  return static_cast<pid_t>(pid);
}

// Signals wait until there is somebody to hand them on to.
void hold_signals() {
  sigset_t held;
  ::sigemptyset(&held);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&held, number);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
}

void allow_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

SystemError parse_failure(std::string_view text) {
  if (text.empty() || text.front() != '!')
    return {"container_died", "the container ended while it was being set up", 0};
  const auto line = text.find('\n');
  return {std::string(text.substr(1, line - 1)), std::string(text.substr(line + 1)), 0};
}

SysStatus expect_message(const Fd& container, std::string_view expected) {
  const auto message = receive_message(container.get());
  if (!message) return tl::make_unexpected(message.error());
  if (message->text != expected) return tl::make_unexpected(parse_failure(message->text));
  return {};
}

/// One launch from configuration to a container that is ready.
class Launch {
 public:
  explicit Launch(LaunchConfig config) : config_(std::move(config)), identity_(plan_identity(::getpid())) {}

  SysStatus start();
  [[nodiscard]] Supervised release(Fd&& runtime) {
    Supervised supervised{
        config_, identity_, std::move(groups_), std::move(scratch_), std::move(sockets_), std::move(runtime)};
    supervised.link = std::move(link_);
    supervised.pid = pid_;
    return supervised;
  }
  Fd runtime;

 private:
  SysStatus prepare_outside();
  SysStatus make_groups();
  SysStatus make_file_system();
  SysStatus send_go(const Fd& container);
  SysStatus finish_outside(const Fd& container);

  LaunchConfig config_;
  IdentityPlan identity_;
  ContainerGroups groups_;
  Scratch scratch_;
  NetworkSockets sockets_;
  Fd control_;
  std::optional<RootPlan> root_;
  Fd link_;
  pid_t pid_ = -1;
};

SysStatus Launch::prepare_outside() {
  runtime = Fd(::open(config_.runtime_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!runtime) return failed("runtime_dir_refused", "open " + config_.runtime_dir);
  auto control = listen_control(runtime);
  if (!control) return tl::make_unexpected(control.error());
  control_ = std::move(*control);
  if (identity_.privileged()) {
    if (::unshare(CLONE_NEWNS) != 0) {
      return failed("unshare_refused", "make a mount namespace (CAP_SYS_ADMIN is missing?)");
    }
    if (auto done = mount_at(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr); !done) return done;
  }
  auto etc = etc_template(config_.cache_dir);
  if (!etc) return tl::make_unexpected(etc.error());
  std::string skeleton;
  if (!identity_.privileged()) {
    skeleton = directory_skeleton(config_.cache_dir, "/usr", "usr").value_or(std::string());
  }
  root_.emplace(RootPlan{config_, identity_, scratch_path(config_.upper_dir), std::move(*etc),
                         std::move(skeleton), -1});
  return {};
}

SysStatus Launch::make_groups() {
  groups_ = ContainerGroups::create(config_);
  return groups_.add_agent(pid_);
}

SysStatus Launch::send_go(const Fd& container) {
  std::string text(message_go);
  std::vector<Fd> files;
  std::vector<int> fds;
  const auto add = [&](std::string_view word, const std::string& path) {
    files.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    text += word;
    fds.push_back(files.back().get());
  };
  if (groups_.limits_memory()) add(message_go_memory, groups_.memory_events());
  if (groups_.limits_pids()) add(message_go_pids, groups_.process_count());
  if (groups_.service_fd() >= 0) {
    text += message_go_service;
    fds.push_back(groups_.service_fd());
  }
  for (const int fd : groups_.command_fds()) fds.push_back(fd);
  return send_message(container.get(), text, fds);
}

SysStatus Launch::make_file_system() {
  auto scratch = make_scratch(config_.upper_dir, config_.cache_dir, config_.limits.disk_bytes, identity_);
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  if (auto done = prepare_scratch(*root_); !done) return done;
  if (!identity_.privileged()) return {};
  const Fd user_namespace(
      ::open(("/proc/" + std::to_string(pid_) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  root_->user_namespace = user_namespace.get();
  auto mounted = mount_layers(*root_);
  root_->user_namespace = -1;
  return mounted;
}

// The container sets up its network meanwhile, and the kernel takes its time to move it into its groups.
SysStatus Launch::finish_outside(const Fd& container) {
  if (auto done = write_id_maps(pid_, identity_); !done) return done;
  SysStatus joined;
  std::thread joining([&] { joined = make_groups(); });
  auto made = make_file_system();
  joining.join();
  (void)!::chdir("/");
  if (!made) return made;
  if (!joined) return joined;
  auto network = receive_message(container.get());
  if (!network) return tl::make_unexpected(network.error());
  if (network->text != message_network || network->descriptors.size() < 3) {
    return tl::make_unexpected(parse_failure(network->text));
  }
  auto& fds = network->descriptors;
  sockets_ = {std::move(fds[0]), std::move(fds[1]), std::move(fds[2]),
              fds.size() > 3 ? std::move(fds[3]) : Fd()};
  if (auto done = send_go(container); !done) return done;
  if (auto prepared = expect_message(container, message_prepared); !prepared) return prepared;
  say({{"prepared", true}});
  if (auto starting = expect_message(container, message_starting); !starting) return starting;
  // One that still waits ends of a signal, so that nobody takes it.
  hold_signals();
  return expect_message(container, message_ready);
}

SysStatus Launch::start() {
  if (auto done = prepare_outside(); !done) return done;
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return failed("socket_failed", "socketpair");
  }
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  // For the container's first process alone: what the launcher mounts must not have the disk's reserve.
  const gid_t reserve = reserve_gid;
  if (identity_.privileged() && ::setgroups(1, &reserve) != 0)
    return failed("groups_refused", "take the group of the disk's reserve");
  const auto pid = fork_into_namespaces();
  if (!pid) return tl::make_unexpected(pid.error());
  if (*pid == 0) {
    ours.reset();
    run_container(ContainerPlan{*root_, control_.get()}, std::move(theirs));
  }
  if (identity_.privileged() && ::setgroups(0, nullptr) != 0) {
    ::kill(*pid, SIGKILL);
    return failed("groups_refused", "leave the group of the disk's reserve");
  }
  pid_ = *pid;
  theirs.reset();
  auto done = finish_outside(ours);
  if (!done) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    groups_.remove();
    clean_scratch(root_->scratch, identity_);
  }
  control_.reset();
  link_ = std::move(ours);
  return done;
}

}  // namespace

int launch() {
  if (!follow_parent(::getppid())) return 1;
  // A launcher that a spawner has started goes by the name of the link that it was started by.
  ::prctl(PR_SET_NAME, "sandboxd");
  ::signal(SIGPIPE, SIG_IGN);
  raise_file_limit();
  const auto text = read_line(STDIN_FILENO, most_config_bytes);
  if (!text) return report_failure(text.error());
  auto config = parse_launch_config(*text);
  if (!config) return report_failure(config.error());
  Launch launching(std::move(*config));
  if (auto done = launching.start(); !done) return report_failure(done.error());
  auto supervised = launching.release(std::move(launching.runtime));
  Supervisor supervisor(supervised, [](std::string_view line) { (void)write_all(STDOUT_FILENO, line); });
  allow_signals();
  say({{"ready", true}, {"pid", supervised.pid}});
  const auto ending = supervisor.run();
  Json last{{"exit", ending.status}, {"reason", ending.reason}};
  if (!ending.message.empty()) last["message"] = ending.message;
  // Whoever waits for the end learns it now; unmounting takes a while longer.
  say(last);
  supervised.groups.remove();
  clean_scratch(supervised.scratch.path, supervised.identity);
  return ending.status;
}

int sweep(int count, char** directories) {
  const IdentityPlan identity = plan_identity(::getpid());
  int status = 0;
  for (int index = 0; index < count; ++index) {
    const std::string scratch = scratch_path(directories[index]);
    if (!exists(scratch)) continue;
    clean_scratch(scratch, identity);
    if (exists(scratch)) status = 1;
  }
  return status;
}

}  // namespace sandboxd
