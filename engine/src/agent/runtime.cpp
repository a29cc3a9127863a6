#include "sandboxd/agent/runtime.hpp"

#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>

#include "sandboxd/agent/asio.hpp"

namespace sandboxd::agent {

namespace {

void log_failure(const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sandboxd agent: %s\n", error.what());
  }
}

}  // namespace

struct Notifier::Waiter {
  asio::steady_timer timer;
};

struct FdWatch::Impl {
  asio::posix::stream_descriptor descriptor;
};

struct Runtime::Impl {
  asio::io_context io{1};
  std::optional<asio::thread_pool> threads;
};

void Notifier::notify() {
  ++told_;
  for (auto* waiter : waiting_) waiter->timer.cancel();
  waiting_.clear();
}

Task<void> Notifier::wait() {
  return wait_until(std::nullopt);
}

Task<void> Notifier::wait_until(std::optional<Clock::time_point> deadline) {
  Waiter waiter{asio::steady_timer(executor_, deadline.value_or(Clock::time_point::max()))};
  waiting_.push_back(&waiter);
  co_await waiter.timer.async_wait(awaiting);
  std::erase(waiting_, &waiter);
}

Task<void> Notifier::wait_since(Look look, std::optional<Clock::time_point> deadline) {
  if (look == this->look()) co_await wait_until(deadline);
}

FdWatch::FdWatch(const asio::any_io_executor& executor, UniqueFd fd)
    : impl_(std::make_unique<Impl>(Impl{asio::posix::stream_descriptor(executor, fd.release())})) {}

FdWatch::~FdWatch() = default;

int FdWatch::fd() const {
  return impl_->descriptor.native_handle();
}

void FdWatch::when_readable(std::function<void()> callback) {
  impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                               [callback = std::move(callback)](const boost::system::error_code& error) {
                                 if (!error) callback();
                               });
}

Task<bool> FdWatch::writable() {
  const auto [error] =
      co_await impl_->descriptor.async_wait(asio::posix::stream_descriptor::wait_write, awaiting);
  co_return !error;
}

void FdWatch::close() {
  boost::system::error_code ignored;
  if (impl_->descriptor.is_open()) impl_->descriptor.close(ignored);
}

void Cancellation::fire() {
  if (fired_) return;
  fired_ = true;
  const auto callbacks = std::move(callbacks_);
  callbacks_.clear();
  for (const auto& [id, callback] : callbacks) callback();
}

Cancellation::Guard Cancellation::on_cancel(std::function<void()> callback) {
  const int id = next_++;
  if (fired_) {
    callback();
  } else {
    callbacks_.emplace(id, std::move(callback));
  }
  return Guard(this, id);
}

void Mutex::Lock::unlock() {
  if (owner_ == nullptr) return;
  ++owner_->serving_;
  owner_->turn_.notify();
  owner_ = nullptr;
}

Task<Mutex::Lock> Mutex::lock() {
  const std::uint64_t ticket = next_++;
  while (serving_ != ticket) co_await turn_.wait();
  co_return Lock(this);
}

Runtime::Runtime(const AgentConfig& config) : config_(config), impl_(std::make_unique<Impl>()) {}

Runtime::~Runtime() = default;

asio::io_context& Runtime::io() {
  return impl_->io;
}

asio::any_io_executor Runtime::executor() {
  return impl_->io.get_executor();
}

void Runtime::detach(Task<void> task) {
  asio::co_spawn(impl_->io, std::move(task), log_failure);
}

Task<void> Runtime::sleep(std::chrono::milliseconds duration) {
  asio::steady_timer timer(impl_->io, duration);
  co_await timer.async_wait(awaiting);
}

Task<void> Runtime::run_blocking(const std::function<void()>& function) {
  if (!impl_->threads) impl_->threads.emplace(2);
  struct Outcome {
    bool done = false;
    Notifier changed;
  };
  // The function stays in the frame of the coroutine that waits here until it has run.
  const auto outcome = std::make_shared<Outcome>(Outcome{false, Notifier(executor())});
  asio::post(*impl_->threads, [this, outcome, work = &function] {
    (*work)();
    asio::post(impl_->io, [outcome] {
      outcome->done = true;
      outcome->changed.notify();
    });
  });
  while (!outcome->done) co_await outcome->changed.wait();
}

Result<pid_t> Runtime::start(const SpawnRequest& request, std::function<void(int)> on_exit) {
  // Where each has at least a thirtieth of the commands' time, the wait for a turn is a short one.
  constexpr std::uint64_t kCrowd = 32;
  const bool crowded = counted_processes().value_or(0) > kCrowd;
  SpawnLimits limits = command_limits(config_);
  limits.crowded = crowded;
  if (request.service) {
    const bool grouped = config_.service_cgroup_fd >= 0;
    limits = {std::span(&config_.service_cgroup_fd, grouped ? 1U : 0U)};
  }
  auto pid = spawn(request, limits);
  if (pid) exits_[*pid] = std::move(on_exit);
  return pid;
}

void Runtime::adopt(pid_t pid, std::function<void(int)> on_exit) {
  exits_[pid] = std::move(on_exit);
}

std::optional<std::uint64_t> Runtime::counted_processes() const {
  if (config_.process_count_fd < 0) return std::nullopt;
  std::array<char, 24> text{};
  std::uint64_t count = 0;
  const ssize_t size = ::pread(config_.process_count_fd, text.data(), text.size(), 0);
  if (size > 0) std::from_chars(text.data(), text.data() + size, count);
  return count;
}

bool Runtime::full() const {
  // A shell that runs a pipeline needs more than one.
  constexpr std::uint64_t kFew = 2;
  const std::uint64_t limit = config_.process_limit;
  if (limit == 0) return false;
  if (const auto count = counted_processes()) return *count + kFew > limit;
  // The whole machine's number costs nothing; where it is small enough, so is ours.
  struct sysinfo machine {};
  if (::sysinfo(&machine) != 0 || machine.procs + kFew < limit) return false;
  return count_threads() + kFew > limit;
}

AgentError Runtime::no_room() const {
  AgentError error{"RESOURCE_BUSY", "The sandbox runs as many processes and threads as it may, " +
                                        std::to_string(config_.process_limit) +
                                        ": there is none left for another command"};
  error.context = {{"limit", config_.process_limit}, {"resource", "processes"}};
  error.operation = "process.start";
  return error;
}

Task<Result<void>> Runtime::room() {
  constexpr auto kPatience = std::chrono::milliseconds(5000);
  constexpr auto kPause = std::chrono::milliseconds(50);
  const auto until = Clock::now() + kPatience;
  while (full()) {
    if (Clock::now() >= until) co_return fail(no_room());
    co_await sleep(kPause);
  }
  co_return Result<void>();
}

void Runtime::reap() {
  const bool init = ::getpid() == 1;
  if (init) {
    int status = 0;
    for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0; pid = ::waitpid(-1, &status, WNOHANG)) {
      auto entry = exits_.extract(pid);
      if (entry.empty()) {
        if (config_.on_foreign_exit) config_.on_foreign_exit(pid, status);
      } else {
        entry.mapped()(status);
      }
    }
    return;
  }
  for (const pid_t child : children()) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child) continue;
    if (auto entry = exits_.extract(child); !entry.empty()) entry.mapped()(status);
  }
}

std::vector<pid_t> Runtime::children() const {
  std::vector<pid_t> out;
  out.reserve(exits_.size());
  for (const auto& [pid, callback] : exits_) out.push_back(pid);
  return out;
}

std::map<std::string, std::string> Runtime::base_env() const {
  return agent::base_env(config_);
}

SpawnLimits command_limits(const AgentConfig& config) {
  SpawnLimits limits{config.command_cgroup_fds, false, 0, config.disk_reserve};
  if (config.process_count_fd < 0) limits.processes = config.process_limit;
  return limits;
}

std::map<std::string, std::string> base_env(const AgentConfig& config) {
  std::map<std::string, std::string> env = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", "/root"},
      {"SHELL", "/bin/bash"},
      {"LANG", "C.UTF-8"},
      {"TERM", "xterm-256color"},
  };
  for (const auto& [name, value] : config.env) env[name] = value;
  if (config.ca_certificate.empty() || ::access(config.ca_certificate.c_str(), R_OK) != 0) return env;
  const bool bundle = !config.ca_bundle.empty() && ::access(config.ca_bundle.c_str(), R_OK) == 0;
  env["NODE_EXTRA_CA_CERTS"] = config.ca_certificate;
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"}) {
    env[name] = bundle ? config.ca_bundle : config.ca_certificate;
  }
  return env;
}

Task<void> Runtime::terminate(ProcessTree tree) {
  constexpr auto kGrace = std::chrono::milliseconds(2000);
  const auto until = Clock::now() + kGrace;
  auto pause = std::chrono::milliseconds(5);
  while (Clock::now() < until) {
    if (signal_tree(tree, SIGTERM) == 0) co_return;
    co_await sleep(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
  co_await exterminate(tree);
}

Task<void> Runtime::exterminate(ProcessTree tree) {
  constexpr auto kGiveUp = std::chrono::milliseconds(8000);
  const auto until = Clock::now() + kGiveUp;
  auto pause = std::chrono::milliseconds(1);
  TreeKiller killer(tree);
  std::optional<Hurry> hurry;
  while (Clock::now() < until) {
    const auto look = killer.kill();
    if (look.alive == 0) co_return;
    // As long as some of them still start others, their quota is what keeps them from getting ahead.
    if (look.found_more) {
      hurry.reset();
      pause = std::chrono::milliseconds(1);
    } else if (!hurry) {
      hurry.emplace(*this);
    }
    co_await sleep(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
}

void Runtime::hurry(int change) {
  const bool before = hurries_ > 0;
  hurries_ += change;
  const bool now = hurries_ > 0;
  if (before != now && config_.hurry) config_.hurry(now);
}

std::vector<std::string> env_list(const std::map<std::string, std::string>& env) {
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.emplace_back(name).append("=").append(value);
  return out;
}

int shell_status(int wait_status) {
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
  return 128 + WTERMSIG(wait_status);
}

}  // namespace sandboxd::agent
