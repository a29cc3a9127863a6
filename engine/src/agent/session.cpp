#include "sandboxd/agent/session.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "sandboxd/agent/session_script.hpp"
#include "sandboxd/agent/starvation.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

/// How long output may still come in after the shell said that the command has ended.
constexpr auto kOutputGrace = std::chrono::milliseconds(10);
/// How long the shell itself gets to finish after all that it had started is gone.
constexpr auto kShellGrace = std::chrono::milliseconds(300);
/// How long a command may go on starting processes after its timeout before its shell is ended.
constexpr auto kStopLimit = std::chrono::milliseconds(3000);
/// How long a shell may take to tell its variables before those of the last time do.
constexpr auto kEnvironmentLimit = std::chrono::milliseconds(3000);
/// Bash's own status and words when it could start nothing, after 15 seconds of trying.
constexpr int kForkFailed = 254;
constexpr std::string_view kForkFailure = "fork: Resource temporarily unavailable";

/// What a command printed before it was cut short is all that the caller will ever see of it.
AgentError with_output(AgentError error, CommandResult result) {
  error.context["stdout"] = to_utf8(std::move(result.out));
  error.context["stderr"] = to_utf8(std::move(result.err));
  return error;
}

}  // namespace

Result<void> write_all(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(file_error(errno, "cannot write", path));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Session::Session(Runtime& runtime, SessionOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      changed_(std::make_shared<Notifier>(runtime.executor())),
      mutex_(runtime.executor()) {}

Session::~Session() {
  if (directory_.empty()) return;
  remove_channel_files();
  for (const char* script : {"/c", "/v"}) ::unlink((directory_ + script).c_str());
  ::rmdir(directory_.c_str());
}

Result<void> Session::make_channel_files() {
  ::mkdir(runtime_.config().run_directory.c_str(), 0700);
  if (::mkdir(directory_.c_str(), 0700) < 0 && errno != EEXIST) {
    return fail(file_error(errno, "cannot make the session's directory", directory_));
  }
  for (const char* kind : {"/o", "/e"}) {
    const std::string path = directory_ + kind + std::to_string(slot_);
    if (::mkfifo(path.c_str(), 0600) < 0 && errno != EEXIST) {
      return fail(file_error(errno, "cannot make the session's pipe", path));
    }
  }
  return {};
}

void Session::remove_channel_files() {
  for (const char* kind : {"/o", "/e"}) ::unlink((directory_ + kind + std::to_string(slot_)).c_str());
}

Result<Session::Channel> Session::open_channel() {
  Channel channel;
  if (auto made = make_channel_files(); !made) return fail(std::move(made.error()));
  for (auto [kind, pump] : {std::pair{"/o", &channel.out}, std::pair{"/e", &channel.err}}) {
    const std::string path = directory_ + kind + std::to_string(slot_);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return fail(file_error(errno, "cannot open the session's pipe", path));
    *pump = std::make_shared<OutputPump>(runtime_.executor(), std::move(fd), changed_);
    (*pump)->start();
  }
  return channel;
}

Result<void> Session::send(const std::string& line) {
  return write_all(control_.get(), line, "session");
}

Result<void> Session::write_script(const ExecRequest& request) {
  const std::string path = directory_ + "/c";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return fail(file_error(errno, "cannot write the command", path));
  std::string text;
  if (request.cwd || !request.env.empty()) {
    text = wrap_command(request);
    text.push_back('\0');
  }
  text += request.command;
  text.push_back('\0');
  return write_all(fd.get(), text, path);
}

std::optional<int> Session::take_status() {
  std::string_view text = status_->peek();
  if (environment_due_) {
    // The variables that nobody waited for any longer come first.
    const std::size_t end = text.starts_with('\0') ? 0 : text.find(std::string_view("\0\0", 2));
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end == 0 ? 1 : end + 2);
  }
  if (text.empty() || text.back() != '\n') return std::nullopt;
  int code = 0;
  std::from_chars(text.data(), text.data() + text.size(), code);
  status_->take();
  environment_due_ = false;
  return code;
}

AgentError Session::terminated() const {
  AgentError error{"SESSION_TERMINATED", "The shell of session '" + options_.id + "' has exited"};
  if (exit_code_) error.message += " with status " + std::to_string(*exit_code_);
  error.context = {{"sessionId", options_.id}, {"exitCode", exit_code_ ? Json(*exit_code_) : Json()}};
  return error;
}

AgentError Session::destroyed_error() const {
  AgentError error{"SESSION_DESTROYED", "Session '" + options_.id + "' was destroyed"};
  error.context = {{"sessionId", options_.id}};
  return error;
}

Task<Result<CommandResult>> Session::exec(ExecRequest request, Cancellation& cancellation) {
  const auto self = shared_from_this();
  const auto lock = co_await mutex_.lock();
  if (destroyed_) co_return fail(destroyed_error());
  if (!alive_) {
    end_reported_ = true;
    co_return fail(terminated());
  }
  if (!service()) {
    if (auto room = co_await runtime_.room(); !room) co_return fail(std::move(room.error()));
  }
  if (cancellation.fired()) co_return fail(interrupted(request.command));
  if (!request.timeout) request.timeout = options_.command_timeout;
  if (service()) {
    auto done = co_await without_shell(request, cancellation);
    if (done) co_return std::move(*done);
    if (pid_ == 0) {
      if (auto started = start_shell(); !started) co_return fail(std::move(started.error()));
    }
  }
  auto result = co_await run(request, cancellation);
  running_ = 0;
  co_return result;
}

Task<Result<CommandResult>> Session::run(const ExecRequest& request, Cancellation& cancellation) {
  auto channel = open_channel();
  if (!channel) co_return fail(std::move(channel.error()));
  if (auto written = write_script(request); !written) co_return fail(std::move(written.error()));
  running_ = ++commands_;
  running_since_ = boot_ticks();
  command_ended_ = false;
  // Nobody reads the commands any more: the shell has been killed, or has become another program.
  if (!send(std::to_string(slot_) + "\n")) co_await kill_shell();

  constexpr std::size_t kOutputLimit = CommandLimits{}.output_bytes;
  const auto guard = cancellation.on_cancel([this] { changed_->notify(); });
  std::optional<Clock::time_point> deadline;
  if (request.timeout) deadline = Clock::now() + *request.timeout;
  CommandResult result;
  StarvationWatch watch(pid_, running_since_);
  bool starved = false;
  bool too_large = false;
  std::optional<int> status;
  while (true) {
    status = take_status();
    if (status || !alive_) break;
    result.out += channel->out->take();
    result.err += channel->err->take();
    const bool late = deadline && Clock::now() >= *deadline;
    too_large = too_large || result.out.size() + result.err.size() > kOutputLimit;
    starved = starved || (!stopping_ && watch.starved());
    if (!stopping_ && (late || too_large || starved || cancellation.fired())) {
      result.timed_out = late;
      start_stop(running_since_, starved);
    }
    const auto until = deadline ? std::min(*deadline, watch.next()) : watch.next();
    co_await changed_->wait_until(stopping_ ? std::nullopt : std::optional(until));
  }
  command_ended_ = true;
  changed_->notify();
  while (stopping_) co_await changed_->wait();
  co_await settle_output(*channel, result);
  if (destroyed_) co_return fail(destroyed_error());
  if (!alive_ && (cancellation.fired() || too_large || starved || result.timed_out)) end_reported_ = true;
  if (cancellation.fired()) co_return fail(interrupted(request.command));
  if (too_large) co_return fail(output_too_large(request.command, kOutputLimit));
  if (result.timed_out) {
    result.exit_code = 124;
    result.err += timeout_line(*request.timeout);
    if (!status) result.err += "The session's shell had to be ended; the next command starts a fresh one\n";
    co_return result;
  }
  if (starved) co_return fail(with_output(starved_error(), std::move(result)));
  if (!status) {
    end_reported_ = true;
    co_return fail(with_output(terminated(), std::move(result)));
  }
  co_return outcome(std::move(result), *status);
}

Result<CommandResult> Session::outcome(CommandResult result, int status) const {
  result.exit_code = status;
  const bool limited = runtime_.config().process_limit > 0 && status == kForkFailed;
  if (limited && result.err.find(kForkFailure) != std::string::npos)
    return fail(with_output(runtime_.no_room(), std::move(result)));
  return result;
}

Task<void> Session::settle_output(Channel& channel, CommandResult& result) {
  const auto until = Clock::now() + kOutputGrace;
  const auto ended = [&channel] {
    channel.out->drain();
    channel.err->drain();
    return channel.out->ended() && channel.err->ended();
  };
  while (!ended() && Clock::now() < until) co_await changed_->wait_until(until);
  result.out += channel.out->take();
  result.err += channel.err->take();
  if (ended()) co_return;
  // Something in the background holds the pipes: it keeps them, the next command gets new ones.
  channel.out->discard();
  channel.err->discard();
  remove_channel_files();
  ++slot_;
}

void Session::start_stop(std::uint64_t since, bool starved) {
  stopping_ = true;
  runtime_.detach([](std::shared_ptr<Session> self, std::uint64_t start, bool hopeless) -> Task<void> {
    co_await self->stop_command(start, hopeless);
  }(shared_from_this(), since, starved));
}

/// Ends what the command has started, and the shell itself when it does not come back by that. No other
/// command begins before this is through: it could not tell their processes apart. What is starved would not
/// get to hear a request to end.
Task<void> Session::stop_command(std::uint64_t since, bool starved) {
  const ProcessTree tree{pid_, false, since};
  const auto give_up = Clock::now() + kStopLimit;
  while (true) {
    if (starved) co_await runtime_.exterminate(tree);
    if (!starved) co_await runtime_.terminate(tree);
    const auto until = Clock::now() + kShellGrace;
    while (!command_ended_ && alive_ && Clock::now() < until) co_await changed_->wait_until(until);
    if (command_ended_ || !alive_) break;
    // The shell goes on with the rest of the command, or is in a loop of its own.
    if (signal_tree(tree, 0) != 0 && Clock::now() < give_up) continue;
    co_await kill_shell();
    break;
  }
  signal_tree(tree, SIGKILL);
  stopping_ = false;
  changed_->notify();
}

Task<void> Session::kill_shell() {
  if (!alive_) co_return;
  const Runtime::Hurry hurry(runtime_);
  ::kill(pid_, SIGKILL);
  while (alive_) co_await changed_->wait();
}

Task<std::map<std::string, std::string>> Session::environment() {
  const auto self = shared_from_this();
  if (!alive_ || mutex_.locked()) co_return known_env_;
  const auto lock = co_await mutex_.lock();
  if (!alive_ || (!environment_due_ && !send("e\n"))) co_return known_env_;
  environment_due_ = true;
  const auto until = Clock::now() + kEnvironmentLimit;
  while (alive_) {
    const std::string_view said = status_->peek();
    if (said == std::string_view("\0", 1) || said.ends_with(std::string_view("\0\0", 2))) break;
    if (Clock::now() >= until) co_return known_env_;
    co_await changed_->wait_until(until);
  }
  if (!alive_) co_return known_env_;
  environment_due_ = false;
  const std::string text = status_->take();
  std::map<std::string, std::string> env;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos && equals != 0) {
      env[std::string(entry.substr(0, equals))] = std::string(entry.substr(equals + 1));
    }
  }
  for (const char* own : {"_", "SHLVL", "OLDPWD"}) env.erase(own);
  known_env_ = env;
  co_return env;
}

std::string Session::cwd() const {
  std::array<char, 4096> target{};
  const std::string link = "/proc/" + std::to_string(pid_) + "/cwd";
  const ssize_t count = alive_ ? ::readlink(link.c_str(), target.data(), target.size()) : -1;
  if (count > 0 && static_cast<std::size_t>(count) < target.size()) {
    std::string path(target.data(), static_cast<std::size_t>(count));
    if (path.starts_with('/') && !path.ends_with(" (deleted)")) return path;
  }
  return options_.cwd.empty() ? runtime_.config().workspace : options_.cwd;
}

void Session::destroy() {
  destroyed_ = true;
  if (const auto child = direct_.lock()) child->terminate();
  if (alive_ && pid_ != 0) {
    const ProcessTree tree{pid_, false, running_since_};
    if (running_ != 0 && signal_tree(tree, SIGKILL) != 0) runtime_.detach(runtime_.exterminate(tree));
    ::kill(pid_, SIGKILL);
  }
  changed_->notify();
}

bool is_sessionless(const std::string& id) {
  return id.empty() || id == kSessionless;
}

}  // namespace sandboxd::agent
