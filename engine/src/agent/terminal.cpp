#include "sandboxd/agent/terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "sandboxd/agent/server.hpp"
#include "sandboxd/agent/session.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kKept = std::size_t{256} << 10U;
constexpr int kLargestSide = 1000;

winsize window(TerminalSize size) {
  winsize out{};
  out.ws_col = static_cast<unsigned short>(std::clamp(size.columns, 1, kLargestSide));
  out.ws_row = static_cast<unsigned short>(std::clamp(size.rows, 1, kLargestSide));
  return out;
}

int query_number(const std::map<std::string, std::string>& query, const char* key, int otherwise) {
  const auto found = query.find(key);
  if (found == query.end()) return otherwise;
  int value = 0;
  const auto& text = found->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && value > 0 ? value : otherwise;
}

}  // namespace

Terminal::Terminal(Runtime& runtime, UniqueFd master)
    : runtime_(runtime), master_(runtime.executor(), std::move(master)), changed_(runtime.executor()) {}

Result<std::shared_ptr<Terminal>> Terminal::open(Runtime& runtime, const SpawnRequest& shell,
                                                 TerminalSize size) {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master) return fail(file_error(errno, "cannot open a terminal", "/dev/ptmx"));
  std::array<char, 128> name{};
  if (::grantpt(master.get()) < 0 || ::unlockpt(master.get()) < 0 ||
      ::ptsname_r(master.get(), name.data(), name.size()) != 0) {
    return fail(file_error(errno, "cannot set up a terminal", "/dev/ptmx"));
  }
  const UniqueFd inside(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!inside) return fail(file_error(errno, "cannot open the terminal", name.data()));
  auto terminal = std::make_shared<Terminal>(runtime, std::move(master));
  terminal->resize(size);
  SpawnRequest request = shell;
  request.fds = {{inside.get(), 0}, {inside.get(), 1}, {inside.get(), 2}};
  request.controlling_terminal = true;
  auto pid = runtime.start(request, [terminal](int status) {
    terminal->wait_status_ = status;
    terminal->read_output();
    terminal->output_ended_ = true;
    terminal->changed_.notify();
  });
  if (!pid) return fail(std::move(pid.error()));
  terminal->pid_ = *pid;
  terminal->arm();
  return terminal;
}

void Terminal::resize(TerminalSize size) {
  const winsize wanted = window(size);
  ::ioctl(master_.fd(), TIOCSWINSZ, &wanted);
}

void Terminal::arm() {
  master_.when_readable([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->output_ended_) return;
    self->read_output();
    self->changed_.notify();
    if (!self->output_ended_) self->arm();
  });
}

void Terminal::read_output() {
  static std::array<char, 65536> chunk;
  while (!output_ended_) {
    const ssize_t count = ::read(master_.fd(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      // EIO: nobody has the inner side open any more.
      output_ended_ = true;
      break;
    }
    recent_.append(chunk.data(), static_cast<std::size_t>(count));
    total_ += static_cast<std::uint64_t>(count);
    if (recent_.size() > 2 * kKept) recent_.erase(0, recent_.size() - kKept);
  }
}

std::string Terminal::output(std::uint64_t& offset) const {
  const std::uint64_t first = total_ - recent_.size();
  const std::uint64_t from = std::max(offset, first);
  offset = total_;
  return recent_.substr(static_cast<std::size_t>(from - first));
}

Task<void> Terminal::input(std::string bytes) {
  std::string_view rest = bytes;
  while (!rest.empty() && !output_ended_) {
    const ssize_t count = ::write(master_.fd(), rest.data(), rest.size());
    if (count > 0) {
      rest.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (!co_await master_.writable()) co_return;
    } else if (errno != EINTR) {
      co_return;
    }
  }
}

void Terminal::end() {
  if (wait_status_) return;
  // As when a terminal's window is closed.
  signal_tree({pid_, true, 0}, SIGHUP);
  runtime_.detach([](std::shared_ptr<Terminal> self) -> Task<void> {
    co_await self->runtime_.terminate({self->pid_, true, 0});
  }(shared_from_this()));
}

Task<Result<std::shared_ptr<Terminal>>> Terminals::get(App& app, const std::string& session_id,
                                                       std::string shell, TerminalSize size) {
  const auto found = terminals_.find(session_id);
  if (found != terminals_.end() && !found->second->ended()) {
    found->second->resize(size);
    co_return found->second;
  }
  if (auto room = co_await app.runtime.room(); !room) co_return fail(std::move(room.error()));
  SpawnRequest request;
  auto env = app.runtime.base_env();
  request.cwd = app.runtime.config().workspace;
  if (!is_sessionless(session_id)) {
    auto session = app.sessions->get(session_id);
    if (!session) co_return fail(std::move(session.error()));
    env = co_await (*session)->environment();
    request.cwd = (*session)->cwd();
  }
  env["TERM"] = "xterm-256color";
  if (shell.empty()) shell = "/bin/bash";
  request.argv = {shell.starts_with('/') ? shell : find_program(shell, env["PATH"])};
  if (request.argv.front().empty()) {
    AgentError error{"COMMAND_NOT_FOUND", "There is no shell '" + shell + "'"};
    error.context = {{"command", shell}};
    co_return fail(std::move(error));
  }
  request.env = env_list(env);
  auto terminal = Terminal::open(runtime_, request, size);
  if (terminal) terminals_[session_id] = *terminal;
  co_return terminal;
}

void Terminals::end(const std::string& session_id) {
  const auto found = terminals_.extract(session_id);
  if (!found.empty()) found.mapped()->end();
}

namespace {

struct Viewer {
  explicit Viewer(asio::any_io_executor executor) : finished(std::move(executor)) {}
  bool gone = false;
  bool sender_done = false;
  Notifier finished;
};

/// Sends what is kept, says that it is ready, then sends what comes until the shell or the viewer is gone.
Task<void> send_output(WebSocketPeer& peer, std::shared_ptr<Terminal> terminal,
                       std::shared_ptr<Viewer> viewer) {
  std::uint64_t offset = 0;
  bool ready = false;
  while (!viewer->gone) {
    const auto look = terminal->changed().look();
    // Before the output: what the shell said last is sent before its end.
    const auto status = terminal->ended();
    auto bytes = terminal->output(offset);
    if (!bytes.empty() && !co_await peer.send(std::move(bytes), true)) break;
    if (!ready) {
      ready = true;
      if (!co_await peer.send("{\"type\":\"ready\"}", false)) break;
      continue;
    }
    if (status) {
      Json message = {{"type", "exit"}, {"code", shell_status(*status)}};
      if (WIFSIGNALED(*status)) {
        const char* name = ::sigabbrev_np(WTERMSIG(*status));
        message["signal"] = std::string("SIG") + (name == nullptr ? "?" : name);
      }
      co_await peer.send(message.dump(), false);
      co_await peer.close(1000, "The shell has exited");
      break;
    }
    co_await terminal->changed().wait_since(look);
  }
  viewer->sender_done = true;
  viewer->finished.notify();
}

Task<void> handle_control(Terminal& terminal, std::string text) {
  const Json message = Json::parse(text, nullptr, false);
  if (!message.is_object() || message.value("type", Json()) != "resize") {
    // A client that sends its keys as text is understood too.
    if (!message.is_object()) co_await terminal.input(std::move(text));
    co_return;
  }
  auto columns = optional_number(message, "cols");
  auto rows = optional_number(message, "rows");
  if (!columns || !rows || !*columns || !*rows) co_return;
  terminal.resize({static_cast<int>(std::clamp(**columns, 1.0, 1000.0)),
                   static_cast<int>(std::clamp(**rows, 1.0, 1000.0))});
}

}  // namespace

Task<void> serve_terminal(App& app, WebSocketPeer& peer, const std::map<std::string, std::string>& query) {
  const auto text = [&](const char* key) {
    const auto found = query.find(key);
    return found == query.end() ? std::string() : found->second;
  };
  const TerminalSize size{query_number(query, "cols", 80), query_number(query, "rows", 24)};
  auto terminal = co_await app.terminals->get(app, text("sessionId"), text("shell"), size);
  if (!terminal) {
    const Json message = {
        {"type", "error"}, {"code", terminal.error().code}, {"message", terminal.error().message}};
    co_await peer.send(message.dump(-1, ' ', true, Json::error_handler_t::replace), false);
    co_await peer.close(1011, terminal.error().message);
    co_return;
  }
  const auto viewer = std::make_shared<Viewer>(app.runtime.executor());
  app.runtime.detach(send_output(peer, *terminal, viewer));
  while (auto message = co_await peer.receive()) {
    if (message->binary) {
      co_await (*terminal)->input(std::move(message->data));
    } else {
      co_await handle_control(**terminal, std::move(message->data));
    }
  }
  viewer->gone = true;
  (*terminal)->changed().notify();
  while (!viewer->sender_done) co_await viewer->finished.wait();
}

}  // namespace sandboxd::agent
