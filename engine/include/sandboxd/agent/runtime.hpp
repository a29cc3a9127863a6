#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandboxd/agent/agent.hpp"
#include "sandboxd/agent/error.hpp"
#include "sandboxd/agent/spawn.hpp"

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes Asio's own allocation of coroutine frames for a mismatch once it has inlined one half of it.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace boost::asio {
class io_context;
}

namespace sandboxd::agent {

namespace asio = boost::asio;
template <class T>
using Task = asio::awaitable<T>;
using Clock = std::chrono::steady_clock;

/// Wakes coroutines of one thread. A waiter looks at what it waits for before it waits and after it woke; one
/// that awaits anything else between its look and its wait says when it looked, or it misses what came in
/// between.
class Notifier {
 public:
  enum class Look : std::uint64_t {};
  explicit Notifier(asio::any_io_executor executor) : executor_(std::move(executor)) {}
  void notify();
  Task<void> wait();
  /// Waits until the deadline at the latest; no deadline waits for ever.
  Task<void> wait_until(std::optional<Clock::time_point> deadline);
  /// A look that begins now.
  [[nodiscard]] Look look() const { return Look{told_}; }
  /// Does not wait when something was told after that look.
  Task<void> wait_since(Look look, std::optional<Clock::time_point> deadline = std::nullopt);

 private:
  struct Waiter;
  asio::any_io_executor executor_;
  std::vector<Waiter*> waiting_;
  std::uint64_t told_ = 0;
};

/// Waits for a descriptor that it owns.
class FdWatch {
 public:
  FdWatch(const asio::any_io_executor& executor, UniqueFd fd);
  ~FdWatch();
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;
  [[nodiscard]] int fd() const;
  /// Calls back once when a read would not wait; never when the descriptor was closed before.
  void when_readable(std::function<void()> callback);
  /// Until a write would not wait; false when the descriptor was closed.
  Task<bool> writable();
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One caller's wish to stop: fired when its connection is gone or it sent a cancel message.
class Cancellation {
 public:
  [[nodiscard]] bool fired() const { return fired_; }
  void fire();
  /// Calls back once, at once when it has fired already. The returned guard takes the callback away.
  class Guard {
   public:
    Guard(Cancellation* owner, int id) : owner_(owner), id_(id) {}
    Guard(Guard&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_) {}
    Guard& operator=(Guard&&) = delete;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (owner_ != nullptr) owner_->callbacks_.erase(id_);
    }

   private:
    Cancellation* owner_;
    int id_;
  };
  [[nodiscard]] Guard on_cancel(std::function<void()> callback);

 private:
  friend class Guard;
  bool fired_ = false;
  int next_ = 0;
  std::map<int, std::function<void()>> callbacks_;
};

/// Lets one coroutine in at a time, in the order of asking.
class Mutex {
 public:
  explicit Mutex(asio::any_io_executor executor) : turn_(std::move(executor)) {}
  class Lock {
   public:
    explicit Lock(Mutex* owner) : owner_(owner) {}
    Lock(Lock&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Lock& operator=(Lock&&) = delete;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { unlock(); }
    void unlock();

   private:
    Mutex* owner_;
  };
  Task<Lock> lock();
  [[nodiscard]] bool locked() const { return serving_ != next_; }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
  Notifier turn_;
};

/// The agent's loop, its children, and the threads that wait for disks.
class Runtime {
 public:
  explicit Runtime(const AgentConfig& config);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  asio::io_context& io();
  asio::any_io_executor executor();
  [[nodiscard]] const AgentConfig& config() const { return config_; }

  /// Starts a child; `on_exit` gets its wait status from the loop, never before this call returns.
  Result<pid_t> start(const SpawnRequest& request, std::function<void(int)> on_exit);
  /// The same for a child that was started before there was this object.
  void adopt(pid_t pid, std::function<void(int)> on_exit);
  /// Collects every child that has ended.
  void reap();
  [[nodiscard]] std::vector<pid_t> children() const;

  /// Whether commands have as many processes as they may: the next one could start nothing.
  [[nodiscard]] bool full() const;
  /// Waits a moment for room for a command; fails with what the limit is when none comes.
  Task<Result<void>> room();
  [[nodiscard]] AgentError no_room() const;

  /// That of the configuration.
  [[nodiscard]] std::map<std::string, std::string> base_env() const;

  /// Lets a coroutine run on its own. A failure of it is logged.
  void detach(Task<void> task);
  Task<void> sleep(std::chrono::milliseconds duration);

  /// Runs `function` on a thread that may wait for a disk. Make the task first and await it in a statement of
  /// its own: GCC 12 destroys a lambda's captures twice when the lambda is a temporary of an expression that
  /// awaits.
  template <class Function>
  auto offload(Function function) -> Task<std::invoke_result_t<Function&>> {
    std::optional<std::invoke_result_t<Function&>> out;
    const std::function<void()> work = [&out, &function] { out.emplace(function()); };
    co_await run_blocking(work);
    co_return std::move(*out);
  }

  /// TERM to the tree, KILL two seconds later, until nothing of it is alive.
  Task<void> terminate(ProcessTree tree);
  /// KILL to the tree, and to what it starts meanwhile, until nothing of it is alive.
  Task<void> exterminate(ProcessTree tree);

  /// While one of these is held, commands get processor time beyond their quota, so that killed ones can end.
  class Hurry {
   public:
    explicit Hurry(Runtime& runtime) : runtime_(&runtime) { runtime_->hurry(1); }
    Hurry(Hurry&& other) noexcept : runtime_(std::exchange(other.runtime_, nullptr)) {}
    Hurry& operator=(Hurry&&) = delete;
    Hurry(const Hurry&) = delete;
    Hurry& operator=(const Hurry&) = delete;
    ~Hurry() {
      if (runtime_ != nullptr) runtime_->hurry(-1);
    }

   private:
    Runtime* runtime_;
  };

 private:
  struct Impl;
  Task<void> run_blocking(const std::function<void()>& function);
  void hurry(int change);
  /// How many processes and threads commands have, where a control group counts them.
  [[nodiscard]] std::optional<std::uint64_t> counted_processes() const;

  const AgentConfig& config_;
  std::unique_ptr<Impl> impl_;
  std::map<pid_t, std::function<void(int)>> exits_;
  int hurries_ = 0;
};

/// The environment of a command: defaults, configuration, certificates; later wins.
std::map<std::string, std::string> base_env(const AgentConfig& config);

/// What a command gets of the container's limits.
SpawnLimits command_limits(const AgentConfig& config);

std::vector<std::string> env_list(const std::map<std::string, std::string>& env);

/// Exit code as a shell reports a wait status: the code, or 128 and the signal.
int shell_status(int wait_status);

}  // namespace sandboxd::agent
