#include "sandboxd/supervisor.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "sandboxd/container.hpp"
#include "sandboxd/relay.hpp"

namespace sandboxd {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using Descriptor = asio::posix::stream_descriptor;
using Clock = std::chrono::steady_clock;
constexpr auto supervised = asio::as_tuple(asio::use_awaitable);

// Ending a thousand processes takes two seconds of a processor.
constexpr auto longest_hurry = std::chrono::seconds(4);

// Measures a tree in a child that has the ids of the container, so that neither closed directories nor a
// large tree keep the loop from anything.
awaitable<std::uint64_t> measure_tree(asio::io_context& io, pid_t pid, const std::string& path) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) co_return 0;
  Descriptor read_end(io, ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const Fd space(::open(("/proc/" + std::to_string(pid) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    if (space) (void)::setns(space.get(), CLONE_NEWUSER);
    const std::uint64_t result = tree_bytes(path);
    (void)!::write(write_end.get(), &result, sizeof result);
    ::_exit(0);
  }
  write_end.reset();
  std::uint64_t result = 0;
  if (child > 0) {
    co_await read_end.async_wait(Descriptor::wait_read, supervised);
    if (::read(read_end.native_handle(), &result, sizeof result) != sizeof result) result = 0;
    ::waitpid(child, nullptr, 0);
  }
  co_return result;
}

// Files of mapped ids: only a process that has them may remove them. It waits until it has been given them.
void remove_with_ids(const std::string& path, const IdentityPlan& identity) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return;
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    ours.reset();
    if (::unshare(CLONE_NEWUSER) != 0 || !send_message(theirs.get(), "unshared")) ::_exit(1);
    const auto mapped = receive_message(theirs.get());
    if (!mapped || mapped->text.empty()) ::_exit(1);
    (void)!::setresgid(0, 0, 0);
    (void)!::setresuid(0, 0, 0);
    ::_exit(remove_tree(path) ? 0 : 1);
  }
  theirs.reset();
  const auto unshared = receive_message(ours.get());
  if (unshared && !unshared->text.empty() && write_id_maps(child, identity))
    (void)send_message(ours.get(), "mapped");
  ours.reset();
  ::waitpid(child, nullptr, 0);
}

std::uint64_t oom_kills(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return 0;
  constexpr std::string_view key = "oom_kill ";
  for (auto at = text->find(key); at != std::string::npos; at = text->find(key, at + 1)) {
    if (at == 0 || (*text)[at - 1] == '\n')
      return std::strtoull(text->c_str() + at + key.size(), nullptr, 10);
  }
  return 0;
}

}  // namespace

struct Supervisor::State {
 public:
  State(Supervised& container, std::function<void(std::string_view)> say)
      : container_(container),
        say_(std::move(say)),
        signals_(io_, SIGTERM, SIGINT, SIGHUP),
        process_(io_),
        disk_timer_(io_),
        link_(io_),
        hurry_timer_(io_) {}

  Ending run() {
    Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, container_.pid, 0)));
    if (pidfd) process_.assign(pidfd.release());
    const std::string egress = "/proc/self/fd/" + std::to_string(container_.runtime.get()) + "/egress.sock";
    const Relay relay(io_, std::move(container_.sockets), egress);
    asio::co_spawn(io_, watch_process(), asio::detached);
    asio::co_spawn(io_, forward_signals(), asio::detached);
    if (container_.link) {
      link_.assign(container_.link.release());
      asio::co_spawn(io_, serve_link(), asio::detached);
    }
    if (container_.groups.limits_memory()) asio::co_spawn(io_, watch_memory(), asio::detached);
    const std::uint64_t disk = container_.config.limits.disk_bytes;
    if (!container_.scratch.enforced && disk > 0) asio::co_spawn(io_, watch_disk(disk), asio::detached);
    io_.run();
    return std::move(ending_);
  }

 private:
  awaitable<void> watch_process() {
    co_await process_.async_wait(Descriptor::wait_read, supervised);
    int status = 0;
    while (::waitpid(container_.pid, &status, 0) < 0 && errno == EINTR) {
    }
    ending_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ending_.reason.empty()) ending_.reason = WIFEXITED(status) ? "exited" : "killed";
    if (WIFSIGNALED(status) && container_.groups.limits_memory() && oom_kills(whole_memory_events()) > 0) {
      ending_.reason = "memory_exceeded";
      ending_.message = "the container was ended: it needed more than its " +
                        std::to_string(container_.config.limits.memory_bytes >> 20U) + " MiB of memory";
    }
    io_.stop();
  }

  awaitable<void> forward_signals() {
    for (;;) {
      auto [error, number] = co_await signals_.async_wait(supervised);
      if (error) co_return;
      ::kill(container_.pid, number == SIGHUP ? SIGTERM : number);
    }
  }

  // The first process's end of the link closes as it begins to end, however that comes, and it is gone only
  // when every process inside is: from there on they get all the processor time that they need for it.
  awaitable<void> serve_link() {
    for (;;) {
      auto [error] = co_await link_.async_wait(Descriptor::wait_read, supervised);
      if (error) co_return;
      std::array<char, 16> text{};
      const ssize_t size = ::recv(link_.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (size <= 0) break;
      const std::string_view word(text.data(), static_cast<std::size_t>(size));
      if (word == message_hurry) want_hurry(true);
      if (word == message_calm) want_hurry(false);
    }
    hurry_wanted_ = false;
    hurry_timer_.cancel();
    container_.groups.lift_cpu_quota();
  }

  void want_hurry(bool wanted) {
    hurry_wanted_ = wanted;
    hurry_timer_.cancel();
    if (wanted) {
      hurry_at(next_hurry_);
    } else {
      end_hurry();
    }
  }

  void hurry_at(Clock::time_point start) {
    hurry_timer_.expires_at(start);
    hurry_timer_.async_wait([this](const boost::system::error_code& error) {
      // A handler that is due already is not cancelled.
      if (error || !hurry_wanted_) return;
      hurry_began_ = Clock::now();
      container_.groups.lift_cpu_quota();
      hurry_timer_.expires_after(longest_hurry);
      hurry_timer_.async_wait([this](const boost::system::error_code& cancelled) {
        if (cancelled || !hurry_wanted_) return;
        end_hurry();
        hurry_at(next_hurry_);
      });
    });
  }

  // What lives on in there must not make its whole life a hurry.
  void end_hurry() {
    if (!hurry_began_) return;
    const auto now = Clock::now();
    next_hurry_ = now + (now - *hurry_began_) * 2;
    hurry_began_.reset();
    container_.groups.restore_cpu_quota();
  }

  [[nodiscard]] std::string whole_memory_events() const {
    auto path = container_.groups.memory_events();
    constexpr std::string_view inner = "/commands";
    const auto at = path.rfind(inner);
    return at == std::string::npos ? path : path.erase(at, inner.size());
  }

  // Version 2 changes a file that inotify sees; version 1 writes to an eventfd that was registered for it.
  [[nodiscard]] Fd memory_notifier() const {
    const std::string& path = container_.groups.memory_events();
    const auto slash = path.rfind('/');
    const std::string file = path.substr(slash + 1);
    if (file == "memory.events") {
      Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
      if (watch && ::inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY) < 0) watch.reset();
      return watch;
    }
    Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const Fd control(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto line = std::to_string(event.get()) + " " + std::to_string(control.get());
    if (!poke(path.substr(0, slash) + "/cgroup.event_control", line)) event.reset();
    return event;
  }

  awaitable<void> watch_memory() {
    Fd notifier = memory_notifier();
    if (!notifier) co_return;
    Descriptor descriptor(io_, notifier.release());
    std::uint64_t seen = 0;
    for (;;) {
      auto [error] = co_await descriptor.async_wait(Descriptor::wait_read, supervised);
      if (error) co_return;
      std::array<char, 4096> drop;
      (void)!::read(descriptor.native_handle(), drop.data(), drop.size());
      // Version 1 tells before the kernel has counted.
      asio::steady_timer pause(io_, std::chrono::milliseconds(20));
      co_await pause.async_wait(supervised);
      const std::uint64_t now = oom_kills(container_.groups.memory_events());
      if (now == seen) continue;
      seen = now;
      say_(R"({"event":"out_of_memory","kills":)" + std::to_string(now) + R"(,"limitBytes":)" +
           std::to_string(container_.config.limits.memory_bytes) + "}\n");
    }
  }

  awaitable<void> watch_disk(std::uint64_t limit) {
    auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::milliseconds(500));
    for (;;) {
      disk_timer_.expires_after(pause);
      auto [error] = co_await disk_timer_.async_wait(supervised);
      if (error) co_return;
      const auto started = Clock::now();
      const auto used = co_await measure_tree(io_, container_.pid, container_.scratch.path);
      // A large tree is not walked more than a twentieth of the time.
      const auto spent = Clock::now() - started;
      pause = std::max<Clock::duration>(std::chrono::milliseconds(1000), spent * 20);
      if (used <= limit) continue;
      ending_.reason = "disk_exceeded";
      ending_.message = "the container was ended: it wrote " + std::to_string(used >> 20U) +
                        " MiB, its disk holds " + std::to_string(limit >> 20U) + " MiB";
      ::kill(container_.pid, SIGKILL);
      co_return;
    }
  }

  Supervised& container_;
  std::function<void(std::string_view)> say_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  Descriptor process_;
  asio::steady_timer disk_timer_;
  Descriptor link_;
  asio::steady_timer hurry_timer_;
  bool hurry_wanted_ = false;
  std::optional<Clock::time_point> hurry_began_;
  Clock::time_point next_hurry_;
  Ending ending_;
};

void clean_scratch(const std::string& path, const IdentityPlan& identity) {
  if (identity.privileged()) {
    // A file system of its own goes with its last mount; what is below is only the place that it was mounted
    // on.
    ::umount2(path.c_str(), MNT_DETACH);
    for (const char* layer : {"usr", "opt", "etc", "dpkg", "apt"}) {
      ::umount2((path + "/low/" + layer).c_str(), MNT_DETACH);
    }
    for (const char* layer : {"/usr", "/opt", "/etc", "/var/lib/dpkg", "/var/lib/apt"}) {
      ::umount2((path + "/root" + layer).c_str(), MNT_DETACH);
    }
    (void)remove_tree(path);
    return;
  }
  if (remove_tree(path)) return;
  remove_with_ids(path, identity);
}

Supervisor::Supervisor(Supervised& container, std::function<void(std::string_view)> say)
    : state_(std::make_unique<State>(container, std::move(say))) {}
Supervisor::~Supervisor() = default;
Ending Supervisor::run() {
  return state_->run();
}

}  // namespace sandboxd
