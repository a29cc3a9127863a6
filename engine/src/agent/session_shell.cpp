#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/session_script.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr int kControlFd = 198;
constexpr int kStatusFd = 199;
/// Far from what no program could be started with; a shell that is started with them says so.
constexpr std::size_t kMostTold = 65536;

struct ShellPipes {
  PipePair control;
  PipePair status;
};

Result<ShellPipes> make_shell_pipes() {
  auto control = make_pipe();
  if (!control) return fail(std::move(control.error()));
  auto status = make_pipe();
  if (!status) return fail(std::move(status.error()));
  // The shell's end of the control pipe must wait for the next line.
  ::fcntl(control->read.get(), F_SETFL, 0);
  return ShellPipes{std::move(*control), std::move(*status)};
}

SpawnRequest shell_request(const std::string& directory, const ShellPipes& pipes,
                           const std::map<std::string, std::string>& env, const std::string& cwd) {
  SpawnRequest request;
  request.argv = {"/bin/bash", "--norc", "--noprofile", "-c", session_driver(directory), "bash"};
  request.env = env_list(env);
  request.cwd = cwd;
  request.fds = {{pipes.control.read.get(), kControlFd}, {pipes.status.write.get(), kStatusFd}};
  return request;
}

std::string new_directory(const AgentConfig& config) {
  return config.run_directory + "/" + random_id("s");
}

}  // namespace

Result<WaitingShell> start_waiting_shell(const AgentConfig& config, const std::function<bool()>& give_up) {
  auto pipes = make_shell_pipes();
  if (!pipes) return fail(std::move(pipes.error()));
  WaitingShell shell;
  shell.directory = new_directory(config);
  shell.env = base_env(config);
  auto limits = command_limits(config);
  limits.give_up = &give_up;
  auto pid = spawn(shell_request(shell.directory, *pipes, shell.env, config.workspace), limits);
  if (!pid) return fail(std::move(pid.error()));
  shell.pid = *pid;
  shell.control = std::move(pipes->control.write);
  shell.status = std::move(pipes->status.read);
  return shell;
}

Result<std::shared_ptr<Session>> Session::open(Runtime& runtime, SessionOptions options) {
  auto session = std::make_shared<Session>(runtime, std::move(options));
  session->directory_ = new_directory(runtime.config());
  if (auto made = session->make_channel_files(); !made) return fail(std::move(made.error()));
  session->known_env_ = runtime.base_env();
  for (const auto& [name, value] : session->options_.env) session->known_env_[name] = value;
  // Few of the commands in the SDK's own sessions need a shell; one that does starts it.
  session->alive_ = session->service();
  if (session->alive_) return session;
  if (auto started = session->start_shell(); !started) return fail(std::move(started.error()));
  return session;
}

std::shared_ptr<Session> Session::adopt(Runtime& runtime, WaitingShell shell) {
  auto session = std::make_shared<Session>(runtime, SessionOptions{"", {}, "", std::nullopt});
  session->directory_ = std::move(shell.directory);
  session->known_env_ = std::move(shell.env);
  runtime.adopt(shell.pid, session->on_shell_exit());
  session->watch_shell(shell.pid, std::move(shell.control), std::move(shell.status));
  return session;
}

std::function<void(int)> Session::on_shell_exit() {
  return [weak = weak_from_this()](int wait_status) {
    const auto self = weak.lock();
    if (!self) return;
    self->alive_ = false;
    self->exit_code_ = shell_status(wait_status);
    self->changed_->notify();
  };
}

Result<void> Session::start_shell() {
  auto pipes = make_shell_pipes();
  if (!pipes) return fail(std::move(pipes.error()));
  auto request = shell_request(directory_, *pipes, known_env_,
                               options_.cwd.empty() ? runtime_.config().workspace : options_.cwd);
  request.service = service();
  auto pid = runtime_.start(request, on_shell_exit());
  if (!pid) return fail(std::move(pid.error()));
  watch_shell(*pid, std::move(pipes->control.write), std::move(pipes->status.read));
  return {};
}

void Session::watch_shell(pid_t pid, UniqueFd control, UniqueFd status) {
  pid_ = pid;
  alive_ = true;
  control_ = std::move(control);
  status_ = std::make_shared<OutputPump>(runtime_.executor(), std::move(status), changed_);
  status_->start();
}

/// Whether the shell's directory is that one, by whatever name.
bool Session::stands_in(const std::string& directory) const {
  struct stat here {};
  struct stat wanted {};
  const std::string link = "/proc/" + std::to_string(pid_) + "/cwd";
  if (::stat(link.c_str(), &here) < 0 || ::stat(directory.c_str(), &wanted) < 0) return false;
  return here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino;
}

Result<void> Session::export_variables(const std::map<std::string, std::string>& variables) {
  const std::string path = directory_ + "/v";
  std::string text;
  for (const auto& entry : env_list(variables)) text.append(entry).push_back('\0');
  if (text.size() > kMostTold) return fail(file_error(E2BIG, "cannot write the variables", path));
  if (auto made = make_channel_files(); !made) return made;
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return fail(file_error(errno, "cannot write the variables", path));
  if (auto written = write_all(fd.get(), text, path); !written) return written;
  return send("v\n");
}

bool Session::become(const SessionOptions& options) {
  if (!alive_ || !stands_in(options.cwd.empty() ? runtime_.config().workspace : options.cwd)) return false;
  auto wanted = runtime_.base_env();
  for (const auto& [name, value] : options.env) wanted[name] = value;
  std::map<std::string, std::string> changes;
  for (const auto& [name, value] : wanted) {
    const auto known = known_env_.find(name);
    if (known != known_env_.end() && known->second == value) continue;
    if (!is_plain_variable(name)) return false;
    changes[name] = value;
  }
  if (!changes.empty() && !export_variables(changes)) return false;
  known_env_ = std::move(wanted);
  options_ = options;
  return true;
}

}  // namespace sandboxd::agent
