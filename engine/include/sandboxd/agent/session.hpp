#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandboxd/agent/child.hpp"
#include "sandboxd/agent/runtime.hpp"

namespace sandboxd::agent {

/// The session id with which the SDK asks for a fresh process a command, with no shell state kept.
inline constexpr std::string_view kSessionless = "__DISABLE_SESSION__";

/// How the SDK names the sessions in which it carries archives. They work for the agent: commands that have
/// taken everything must not keep /workspace from being saved.
inline constexpr std::string_view kBackupSession = "__sandbox_backup_";

struct SessionOptions {
  std::string id;
  std::map<std::string, std::string> env;
  std::string cwd;
  std::optional<std::chrono::milliseconds> command_timeout;
};

struct ExecRequest {
  std::string command;
  std::map<std::string, std::string> env;
  std::optional<std::string> cwd;
  std::optional<std::chrono::milliseconds> timeout;
};

/// One bash that lives as long as the session: directory, variables, functions and options stay between
/// commands.
///
/// The shell reads from one pipe which command is next and says on another how it ended. Each command's
/// output goes to pipes of its own (named ones, so that the shell can open them), so what an earlier command
/// left running neither mixes into a later answer nor holds it up.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Runtime& runtime, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  static Result<std::shared_ptr<Session>> open(Runtime& runtime, SessionOptions options);
  /// With a shell that has been started already.
  static std::shared_ptr<Session> adopt(Runtime& runtime, WaitingShell shell);

  /// Makes it, which nobody has used yet, as one that would be opened with the options, if it can be that.
  bool become(const SessionOptions& options);
  Task<Result<CommandResult>> exec(ExecRequest request, Cancellation& cancellation);
  /// The variables that the shell exports, as of now or, while a command runs, of the last time it was asked.
  Task<std::map<std::string, std::string>> environment();
  [[nodiscard]] std::string cwd() const;
  /// Ends the shell and the command that runs in it; what earlier commands left in the background goes on.
  void destroy();

  [[nodiscard]] bool alive() const { return alive_; }
  /// True when the shell's end has not been told to a caller yet.
  [[nodiscard]] bool end_unreported() const { return !alive_ && !end_reported_; }
  void mark_reported() { end_reported_ = true; }
  [[nodiscard]] AgentError terminated() const;
  [[nodiscard]] const SessionOptions& options() const { return options_; }

 private:
  struct Channel {
    std::shared_ptr<OutputPump> out;
    std::shared_ptr<OutputPump> err;
  };
  Result<void> start_shell();
  [[nodiscard]] std::function<void(int)> on_shell_exit();
  void watch_shell(pid_t pid, UniqueFd control, UniqueFd status);
  [[nodiscard]] bool stands_in(const std::string& directory) const;
  /// Has the shell, which runs no command, export these besides what it has.
  Result<void> export_variables(const std::map<std::string, std::string>& variables);
  Result<void> make_channel_files();
  void remove_channel_files();
  Result<Channel> open_channel();
  Result<void> send(const std::string& line);
  Result<void> write_script(const ExecRequest& request);
  Task<void> settle_output(Channel& channel, CommandResult& result);
  Task<void> stop_command(std::uint64_t since, bool starved);
  /// Ends the shell and waits until it is reaped.
  Task<void> kill_shell();
  void start_stop(std::uint64_t since, bool starved);
  Task<Result<CommandResult>> run(const ExecRequest& request, Cancellation& cancellation);
  [[nodiscard]] std::optional<int> take_status();
  [[nodiscard]] AgentError destroyed_error() const;
  [[nodiscard]] bool service() const { return options_.id.starts_with(kBackupSession); }
  [[nodiscard]] Result<CommandResult> outcome(CommandResult result, int status) const;
  /// What needs no shell, if this is such a command: each process takes milliseconds to start.
  Task<std::optional<Result<CommandResult>>> without_shell(const ExecRequest& request,
                                                           Cancellation& cancellation);

  Runtime& runtime_;
  SessionOptions options_;
  std::string directory_;
  pid_t pid_ = 0;
  UniqueFd control_;
  std::shared_ptr<Notifier> changed_;
  std::weak_ptr<Child> direct_;
  std::shared_ptr<OutputPump> status_;
  Mutex mutex_;
  bool alive_ = false;
  bool destroyed_ = false;
  bool end_reported_ = false;
  bool stopping_ = false;
  bool command_ended_ = false;
  bool environment_due_ = false;  ///< the shell was asked for its variables and has not answered yet
  std::optional<int> exit_code_;
  std::uint64_t slot_ = 0;
  std::uint64_t running_ = 0;  ///< number of the command that runs, 0 for none
  std::uint64_t commands_ = 0;
  std::uint64_t running_since_ = 0;
  std::map<std::string, std::string> known_env_;
};

/// All sessions of the container, by id.
class Sessions {
 public:
  explicit Sessions(Runtime& runtime) : runtime_(runtime) {}

  /// Has a shell for the first session that was started ahead of the agent itself.
  void adopt(WaitingShell shell);
  /// Starts the shell of the first session ahead of it, once: a process takes longer to start than most
  /// commands to run.
  void prepare();
  Result<std::shared_ptr<Session>> create(SessionOptions options);
  /// The session of that id; one that does not exist, or whose end its user knows of, is made afresh.
  Result<std::shared_ptr<Session>> get(const std::string& id);
  /// The session when it is there and alive.
  [[nodiscard]] std::shared_ptr<Session> find(const std::string& id) const;
  void remove(const std::string& id);
  void remove_all();
  [[nodiscard]] std::vector<std::string> ids() const;

  /// Where a session's relative paths start.
  [[nodiscard]] std::string directory_of(const std::string& id) const;

 private:
  Runtime& runtime_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::shared_ptr<Session> spare_;
  bool prepared_ = false;
};

/// Writes all of it, however often it has to be asked; `path` is for the error.
Result<void> write_all(int fd, std::string_view bytes, std::string_view path);

/// `__DISABLE_SESSION__` and requests without an id run without a session.
bool is_sessionless(const std::string& id);

}  // namespace sandboxd::agent
