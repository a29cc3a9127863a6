// A launch begins with two connections. Each opens with 37 bytes: an id of 36, the same in both, and `c` for
// control or `e` for errors. Control becomes the launcher's standard input and output, errors its standard
// error. The spawner adds two lines of its own to control: `{"launcher":PID}`, at any time, and as the last
// of all `{"ended":{"code":N,"signal":null}}`, or with a signal's name instead of a code. From there on the
// id of the process stays taken until the host closes control, so that the host never signals another one by
// it.
#include "sandboxd/spawner.hpp"

#include <linux/close_range.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
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
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sandboxd/system.hpp"

namespace sandboxd {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using Descriptor = asio::posix::stream_descriptor;
using Json = nlohmann::json;
constexpr auto settled = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t launch_id_bytes = 36;
constexpr char control_kind = 'c';
constexpr char errors_kind = 'e';
// Until descriptors are free again.
constexpr auto accept_pause = std::chrono::milliseconds(100);

struct Header {
  std::string id;
  char kind = 0;
};

std::optional<Header> parse_header(std::string_view text) {
  const std::string_view id = text.substr(0, launch_id_bytes);
  const char kind = text[launch_id_bytes];
  if (id.find_first_not_of("0123456789abcdef-") != std::string_view::npos) return std::nullopt;
  if (kind != control_kind && kind != errors_kind) return std::nullopt;
  return Header{std::string(id), kind};
}

std::string to_line(const Json& message) {
  return message.dump() + "\n";
}

std::string ended_line(const siginfo_t& end) {
  Json ended{{"code", nullptr}, {"signal", nullptr}};
  if (end.si_code == CLD_EXITED) {
    ended["code"] = end.si_status;
  } else {
    const char* name = ::sigabbrev_np(end.si_status);
    ended["signal"] = "SIG" + (name != nullptr ? std::string(name) : std::to_string(end.si_status));
  }
  return to_line({{"ended", ended}});
}

// For people: the host writes it to its log.
void complain(const SystemError& error) {
  (void)write_all(STDERR_FILENO, error.text() + "\n");
}

// Asio waits for a descriptor by making it non-blocking, for everybody who has it.
void make_blocking(const Fd& fd) {
  int off = 0;
  ::ioctl(fd.get(), FIONBIO, &off);
}

// What a signal to the whole group is for is the host's to decide: without this process there is nobody to
// put its sandboxes to sleep. A handler, unlike being ignored, does not outlive exec.
void leave_signals_to_host() {
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(number, &nothing, nullptr);
  // Ignored, it would leave nothing to tell of an end.
  ::signal(SIGCHLD, SIG_DFL);
}

/// Holds every signal back, so that none is lost on a handler that a launcher still has of this process.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

void default_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_launcher(const char* program, pid_t spawner, const Fd& control, const Fd& errors) {
  if (!follow_parent(spawner)) ::_exit(1);
  ::dup2(control.get(), STDIN_FILENO);
  ::dup2(control.get(), STDOUT_FILENO);
  ::dup2(errors.get(), STDERR_FILENO);
  default_signals();
  std::string name(program);
  std::string role("launch");
  const char* path = std::getenv("PATH");
  std::string variable = "PATH=" + std::string(path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
  std::array<char*, 3> arguments{name.data(), role.data(), nullptr};
  std::array<char*, 2> environment{variable.data(), nullptr};
  ::execve("/proc/self/exe", arguments.data(), environment.data());
  complain({"exec_failed", "exec /proc/self/exe", errno});
  ::_exit(127);
}

struct Launched {
  pid_t pid = -1;
  Fd process;  ///< readable at its end
};

SysResult<Launched> start_launcher(const char* program, const Fd& control, const Fd& errors) {
  const pid_t spawner = ::getpid();
  const HeldSignals held;
  const pid_t pid = ::fork();
  if (pid < 0) return failed("fork_failed", "start a launcher");
  if (pid == 0) become_launcher(program, spawner, control, errors);
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    auto failure = failed("pidfd_failed", "watch a launcher");
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return failure;
  }
  return Launched{pid, std::move(process)};
}

class Spawner {
 public:
  Spawner(const char* program, Fd&& listener)
      : program_(program), host_(io_, STDIN_FILENO), listener_(io_, listener.release()), pause_(io_) {
    listener_.native_non_blocking(true);
  }

  void run() {
    asio::co_spawn(io_, follow_host(), asio::detached);
    asio::co_spawn(io_, accept_connections(), asio::detached);
    io_.run();
  }

 private:
  struct Half {
    char kind = 0;
    std::shared_ptr<Descriptor> connection;
  };

  awaitable<void> follow_host() {
    for (;;) {
      auto [error] = co_await host_.async_wait(Descriptor::wait_read, settled);
      std::array<char, 64> drop{};
      const ssize_t count = error ? 0 : ::read(host_.native_handle(), drop.data(), drop.size());
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
    }
    io_.stop();
  }

  awaitable<void> accept_connections() {
    for (;;) {
      auto [error] = co_await listener_.async_wait(Descriptor::wait_read, settled);
      if (error) co_return;
      Fd connection(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection) {
        asio::co_spawn(io_, greet(std::move(connection)), asio::detached);
      } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        complain({"accept_failed", "accept a connection of the host", errno});
        pause_.expires_after(accept_pause);
        co_await pause_.async_wait(settled);
      }
    }
  }

  [[nodiscard]] std::shared_ptr<Descriptor> adopt(Fd&& fd) {
    auto descriptor = std::make_shared<Descriptor>(io_);
    boost::system::error_code error;
    descriptor->assign(fd.get(), error);
    if (error) return nullptr;
    (void)fd.release();
    return descriptor;
  }

  // Not a byte more than the header: the rest is the launcher's.
  static awaitable<std::optional<Header>> read_header(Descriptor& connection) {
    std::string text(launch_id_bytes + 1, '\0');
    for (std::size_t size = 0; size < text.size();) {
      auto [error] = co_await connection.async_wait(Descriptor::wait_read, settled);
      if (error) co_return std::nullopt;
      const ssize_t count =
          ::recv(connection.native_handle(), text.data() + size, text.size() - size, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) co_return std::nullopt;
      if (count > 0) size += static_cast<std::size_t>(count);
    }
    auto header = parse_header(text);
    if (!header) complain({"bad_header", "a connection that begins no launch is refused", 0});
    co_return header;
  }

  awaitable<void> greet(Fd fd) {
    const auto connection = adopt(std::move(fd));
    if (!connection) co_return;
    const auto header = co_await read_header(*connection);
    if (!header) co_return;
    const auto waiting = halves_.find(header->id);
    if (waiting == halves_.end()) {
      halves_[header->id] = {header->kind, connection};
      co_await forget_closed(header->id, connection);
      co_return;
    }
    if (waiting->second.kind == header->kind) {
      complain({"bad_header", "a connection whose like waits already is refused", 0});
      co_return;
    }
    const Half other = std::move(waiting->second);
    halves_.erase(waiting);
    Fd control(connection->release());
    Fd errors(other.connection->release());
    if (header->kind == errors_kind) std::swap(control, errors);
    co_await attend(std::move(control), std::move(errors));
  }

  awaitable<void> forget_closed(const std::string& id, const std::shared_ptr<Descriptor>& connection) {
    co_await hang_up(*connection);
    const auto waiting = halves_.find(id);
    if (waiting != halves_.end() && waiting->second.connection == connection) halves_.erase(waiting);
  }

  // Until the host has closed its end, or this one is taken away. What Asio tells of a descriptor may be
  // meant for an earlier one: nothing is believed that has not been looked at.
  static awaitable<void> hang_up(Descriptor& connection) {
    for (;;) {
      auto [error] = co_await connection.async_wait(Descriptor::wait_error, settled);
      if (error) co_return;
      pollfd state{connection.native_handle(), 0, 0};
      if (::poll(&state, 1, 0) > 0) co_return;
    }
  }

  // Without a way to wait for it, it may not go on. Its id stays taken.
  awaitable<siginfo_t> end_of(Launched launched) {
    const auto process = adopt(std::move(launched.process));
    if (!process) ::kill(launched.pid, SIGKILL);
    for (;;) {
      if (process) co_await process->async_wait(Descriptor::wait_read, settled);
      siginfo_t info{};
      const int options = WEXITED | WNOWAIT | (process ? WNOHANG : 0);
      const int looked = ::waitid(P_PID, static_cast<id_t>(launched.pid), &info, options);
      if (looked == 0 && info.si_pid == 0) continue;
      if (looked == 0 || errno != EINTR) co_return info;
    }
  }

  /// One launch, from both its connections to the moment when the host has heard of its end.
  awaitable<void> attend(Fd control, Fd errors) {
    make_blocking(control);
    make_blocking(errors);
    auto launched = start_launcher(program_, control, errors);
    if (!launched) {
      const std::string reason = launched.error().text() + "\n";
      (void)!::send(errors.get(), reason.data(), reason.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      siginfo_t failure{};
      failure.si_code = CLD_EXITED;
      failure.si_status = 1;
      const std::string last = ended_line(failure);
      (void)!::send(control.get(), last.data(), last.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      co_return;
    }
    errors.reset();
    const std::string first = to_line({{"launcher", launched->pid}});
    (void)!::send(control.get(), first.data(), first.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const pid_t pid = launched->pid;
    const siginfo_t end = co_await end_of(std::move(*launched));
    const auto peer = adopt(std::move(control));
    if (peer) {
      const std::string last = ended_line(end);
      co_await tell(*peer, last);
      co_await hang_up(*peer);
    }
    ::waitpid(pid, nullptr, 0);
  }

  // The last line: it may have to wait for a host that is slow to read.
  static awaitable<void> tell(Descriptor& control, const std::string& line) {
    while (::send(control.native_handle(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) co_return;
      auto [error] = co_await control.async_wait(Descriptor::wait_write, settled);
      if (error) co_return;
    }
  }

  const char* program_;
  asio::io_context io_{1};
  Descriptor host_;
  Descriptor listener_;
  asio::steady_timer pause_;
  std::map<std::string, Half> halves_;
};

}  // namespace

int spawn_launchers(const char* program, const char* socket) {
  if (!follow_parent(::getppid())) return 1;
  ::prctl(PR_SET_NAME, "sandboxd-spawn");
  // What whoever started it had open is not its launchers'.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  raise_file_limit();
  leave_signals_to_host();
  auto listener = listen_privately(socket, socket);
  if (!listener) {
    complain(listener.error());
    return 1;
  }
  Spawner spawner(program, std::move(*listener));
  if (!write_all(STDOUT_FILENO, to_line({{"ready", true}}))) return 1;
  spawner.run();
  return 0;
}

}  // namespace sandboxd
