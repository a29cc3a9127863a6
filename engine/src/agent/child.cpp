#include "sandboxd/agent/child.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace sandboxd::agent {
namespace {

/// How long output may come in after the command itself has ended, when a background child still holds the
/// pipe.
constexpr auto kOutputGrace = std::chrono::milliseconds(10);
constexpr std::size_t kReadSize = 65536;

}  // namespace

OutputPump::OutputPump(const asio::any_io_executor& executor, UniqueFd fd, std::shared_ptr<Notifier> changed)
    : watch_(executor, std::move(fd)), changed_(std::move(changed)) {}

void OutputPump::start() {
  arm();
}

void OutputPump::arm() {
  if (armed_ || ended_ || buffer_.size() >= limit_) return;
  armed_ = true;
  watch_.when_readable([self = shared_from_this()] {
    self->armed_ = false;
    self->drain();
    self->changed_->notify();
    self->arm();
  });
}

void OutputPump::drain() {
  static std::array<char, kReadSize> chunk;
  while (!ended_ && buffer_.size() < limit_) {
    const ssize_t count = ::read(watch_.fd(), chunk.data(), chunk.size());
    if (count > 0) {
      if (!discarding_) buffer_.append(chunk.data(), static_cast<std::size_t>(count));
      if (discarding_ && static_cast<std::size_t>(count) == chunk.size()) return;
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    ended_ = true;
    watch_.close();
  }
}

std::string OutputPump::take() {
  std::string out = std::move(buffer_);
  buffer_.clear();
  arm();
  return out;
}

void OutputPump::discard() {
  discarding_ = true;
  buffer_.clear();
  buffer_.shrink_to_fit();
  arm();
}

std::string timeout_line(std::chrono::milliseconds timeout) {
  return "Command timed out after " + std::to_string(timeout.count()) + "ms\n";
}

AgentError output_too_large(const std::string& command, std::size_t limit) {
  AgentError error{"COMMAND_EXECUTION_ERROR",
                   "The command printed more than " + std::to_string(limit) +
                       " bytes; stream it with execStream() or write it to a file"};
  error.context = {{"command", command}, {"limitBytes", limit}};
  error.operation = "command.execute";
  return error;
}

AgentError interrupted(const std::string& command) {
  AgentError error{"OPERATION_INTERRUPTED", "The caller went away before the command had finished"};
  error.context = {{"reason", "transport_disposed"},
                   {"operation", "commands.execute"},
                   {"phase", "running"},
                   {"admitted", true},
                   {"retryable", false},
                   {"command", command}};
  return error;
}

Child::Child(Runtime& runtime)
    : runtime_(runtime), changed_(std::make_shared<Notifier>(runtime.executor())) {}

Result<std::shared_ptr<Child>> Child::start(Runtime& runtime, SpawnRequest request) {
  auto out = make_pipe();
  if (!out) return fail(std::move(out.error()));
  auto err = make_pipe();
  if (!err) return fail(std::move(err.error()));
  auto child = std::make_shared<Child>(runtime);
  request.fds.emplace_back(out->write.get(), 1);
  request.fds.emplace_back(err->write.get(), 2);
  auto pid = runtime.start(request, [child](int status) {
    child->wait_status_ = status;
    child->exit_code_ = shell_status(status);
    child->ended_at_ = Clock::now();
    child->changed_->notify();
  });
  if (!pid) return fail(std::move(pid.error()));
  child->pid_ = *pid;
  child->out_ = std::make_shared<OutputPump>(runtime.executor(), std::move(out->read), child->changed_);
  child->err_ = std::make_shared<OutputPump>(runtime.executor(), std::move(err->read), child->changed_);
  child->out_->start();
  child->err_->start();
  return child;
}

Result<std::shared_ptr<Child>> Child::shell(Runtime& runtime, const std::string& command, std::string cwd,
                                            const std::map<std::string, std::string>& env, bool service) {
  SpawnRequest request;
  request.argv = {"/bin/bash", "-c", command};
  request.env = env_list(env);
  request.cwd = std::move(cwd);
  request.service = service;
  return start(runtime, std::move(request));
}

bool Child::settled() const {
  if (!exit_code_) return false;
  return (out_->ended() && err_->ended()) || Clock::now() >= ended_at_ + kOutputGrace;
}

std::optional<Clock::time_point> Child::settles_at() const {
  if (!exit_code_) return std::nullopt;
  return ended_at_ + kOutputGrace;
}

void Child::terminate() {
  if (terminating_) return;
  terminating_ = true;
  runtime_.detach([](std::shared_ptr<Child> self) -> Task<void> {
    co_await self->runtime_.terminate({self->pid_, true, 0});
    self->terminating_ = false;
    self->changed_->notify();
  }(shared_from_this()));
}

void Child::abandon_output() {
  out_->discard();
  err_->discard();
}

Task<Result<CommandResult>> Child::collect(CommandLimits limits, Cancellation* cancellation,
                                           std::string command) {
  const auto self = shared_from_this();
  CommandResult result;
  std::optional<Clock::time_point> deadline;
  if (limits.timeout) deadline = Clock::now() + *limits.timeout;
  const auto guard = cancellation == nullptr
                         ? std::optional<Cancellation::Guard>()
                         : std::optional(cancellation->on_cancel([this] { changed_->notify(); }));
  bool too_large = false;
  bool cancelled = false;
  while (!settled() || terminating_) {
    result.out += out_->take();
    result.err += err_->take();
    const bool late = deadline && Clock::now() >= *deadline && !exit_code_;
    too_large = too_large || result.out.size() + result.err.size() > limits.output_bytes;
    cancelled = cancelled || (cancellation != nullptr && cancellation->fired());
    if (!terminating_ && !exit_code_ && (late || too_large || cancelled)) {
      result.timed_out = late;
      terminate();
    }
    auto until = exit_code_ ? settles_at() : deadline;
    if (terminating_) until.reset();
    co_await changed_->wait_until(until);
  }
  out_->drain();
  err_->drain();
  result.out += out_->take();
  result.err += err_->take();
  abandon_output();
  if (cancelled) co_return fail(interrupted(command));
  if (too_large) co_return fail(output_too_large(command, limits.output_bytes));
  result.exit_code = *exit_code_;
  if (result.timed_out) {
    result.exit_code = 124;
    result.err += timeout_line(*limits.timeout);
  }
  co_return result;
}

}  // namespace sandboxd::agent
