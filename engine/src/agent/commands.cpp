#include "sandboxd/agent/commands.hpp"

#include <utility>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

bool is_base64(const std::string& encoding) {
  return encoding == "base64" || encoding == "binary";
}

/// The output goes in by hand: a JSON library would copy megabytes several times.
Response command_response(const CommandRequest& request, CommandResult result) {
  Json head = {
      {"success", result.exit_code == 0}, {"exitCode", result.exit_code}, {"timestamp", iso_timestamp()}};
  if (!is_sessionless(request.session_id)) head["sessionId"] = request.session_id;
  if (is_base64(request.encoding)) head["encoding"] = "base64";
  Response response;
  std::string& body = response.body;
  body = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  body.pop_back();
  body.reserve(body.size() + result.out.size() + result.err.size() + request.exec.command.size() + 256);
  const auto add = [&](std::string_view key, std::string text, bool bytes) {
    body.append(",\"").append(key).append("\":");
    if (bytes) {
      body.push_back('"');
      append_base64(body, text);
      body.push_back('"');
    } else {
      append_json_string(body, to_utf8(std::move(text)));
    }
  };
  add("stdout", std::move(result.out), is_base64(request.encoding));
  add("stderr", std::move(result.err), is_base64(request.encoding));
  add("command", request.exec.command, false);
  body.push_back('}');
  return response;
}

Task<Result<Response>> execute(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto command = read_command(*body);
  if (!command) co_return fail(std::move(command.error()));
  if (is_sessionless(command->session_id)) {
    auto child = co_await start_in_session(app, *command);
    if (!child) co_return fail(std::move(child.error()));
    const CommandLimits limits{command->exec.timeout};
    auto result = co_await (*child)->collect(limits, request.cancellation.get(), command->exec.command);
    if (!result) co_return fail(std::move(result.error()));
    co_return command_response(*command, std::move(*result));
  }
  auto session = app.sessions->get(command->session_id);
  if (!session) co_return fail(std::move(session.error()));
  auto result = co_await (*session)->exec(command->exec, *request.cancellation);
  if (!result) co_return fail(std::move(result.error()));
  co_return command_response(*command, std::move(*result));
}

struct StreamState {
  CommandRequest command;
  std::shared_ptr<Child> child;
  std::shared_ptr<Cancellation> cancellation;
};

Json event(const StreamState& state, const char* type) {
  Json out = {{"type", type}, {"timestamp", iso_timestamp()}};
  if (!is_sessionless(state.command.session_id)) out["sessionId"] = state.command.session_id;
  return out;
}

Task<bool> send_output(Sink& sink, const StreamState& state, const char* type, std::string text) {
  if (text.empty()) co_return true;
  auto output = event(state, type);
  output["data"] = std::move(text);
  co_return co_await send_event(sink, output);
}

/// Sends output as it comes until the command has ended; false when the receiver has gone.
Task<bool> relay_output(Sink& sink, StreamState& state, bool& timed_out) {
  auto& child = *state.child;
  OutputText out(is_base64(state.command.encoding));
  OutputText err(is_base64(state.command.encoding));
  std::optional<Clock::time_point> deadline;
  if (state.command.exec.timeout) deadline = Clock::now() + *state.command.exec.timeout;
  const auto guard = state.cancellation->on_cancel([&child] { child.changed().notify(); });
  while (true) {
    const auto look = child.changed().look();
    const bool last = child.settled();
    if (last) {
      child.out().drain();
      child.err().drain();
    }
    if (!co_await send_output(sink, state, "stdout", out.feed(child.out().take()))) co_return false;
    if (!co_await send_output(sink, state, "stderr", err.feed(child.err().take()))) co_return false;
    if (last) break;
    if (state.cancellation->fired()) co_return false;
    if (!child.exit_code() && deadline && Clock::now() >= *deadline) {
      timed_out = true;
      deadline.reset();
      child.terminate();
    }
    if (!child.settled())
      co_await child.changed().wait_since(look, child.exit_code() ? child.settles_at() : deadline);
  }
  if (!co_await send_output(sink, state, "stdout", out.finish())) co_return false;
  std::string rest = err.finish();
  if (timed_out) rest += timeout_line(*state.command.exec.timeout);
  co_return co_await send_output(sink, state, "stderr", std::move(rest));
}

Task<void> stream_command(Sink& sink, std::shared_ptr<StreamState> state) {
  auto started = event(*state, "start");
  started["command"] = state->command.exec.command;
  started["pid"] = state->child->pid();
  bool timed_out = false;
  bool there = co_await send_event(sink, started);
  there = there && co_await relay_output(sink, *state, timed_out);
  state->child->abandon_output();
  if (!there) {
    if (!state->child->exit_code()) state->child->terminate();
    co_return;
  }
  auto done = event(*state, "complete");
  done["command"] = state->command.exec.command;
  done["exitCode"] = timed_out ? 124 : state->child->exit_code().value_or(-1);
  co_await send_event(sink, done);
}

Task<Result<Response>> execute_stream(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto command = read_command(*body);
  if (!command) co_return fail(std::move(command.error()));
  auto child = co_await start_in_session(app, *command);
  if (!child) co_return fail(std::move(child.error()));
  auto state = std::make_shared<StreamState>(StreamState{std::move(*command), *child, request.cancellation});
  co_return event_stream([state](Sink& sink) { return stream_command(sink, state); });
}

constexpr Route kCommandsRoutes[] = {
    {"POST", "/api/execute", execute},
    {"POST", "/api/execute/stream", execute_stream},
};

}  // namespace

Result<CommandRequest> read_command(const Json& body) {
  CommandRequest request;
  auto command = required_string(body, "command");
  if (!command) return fail(std::move(command.error()));
  request.exec.command = std::move(*command);
  const bool blank = request.exec.command.find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank || request.exec.command.find('\0') != std::string::npos) {
    AgentError error{"INVALID_COMMAND", blank ? "The command is empty" : "The command holds a NUL character"};
    error.context = {{"command", request.exec.command}};
    return fail(std::move(error));
  }
  auto session = optional_string(body, "sessionId");
  if (!session) return fail(std::move(session.error()));
  request.session_id = session->value_or("default");
  auto env = optional_env(body, "env");
  if (!env) return fail(std::move(env.error()));
  request.exec.env = std::move(*env);
  auto cwd = optional_string(body, "cwd");
  if (!cwd) return fail(std::move(cwd.error()));
  if (*cwd && !(*cwd)->empty()) request.exec.cwd = std::move(**cwd);
  auto timeout = optional_timeout(body, "timeoutMs");
  if (!timeout) return fail(std::move(timeout.error()));
  request.exec.timeout = *timeout;
  auto encoding = optional_string(body, "encoding");
  if (!encoding) return fail(std::move(encoding.error()));
  request.encoding = encoding->value_or("utf8");
  return request;
}

std::string join_path(const std::string& base, const std::string& path) {
  if (path.starts_with('/')) return path;
  return base.ends_with('/') ? base + path : base + "/" + path;
}

Task<Result<std::shared_ptr<Child>>> start_in_session(App& app, const CommandRequest& request) {
  if (auto room = co_await app.runtime.room(); !room) co_return fail(std::move(room.error()));
  auto env = app.runtime.base_env();
  std::string cwd = app.runtime.config().workspace;
  if (!is_sessionless(request.session_id)) {
    auto session = app.sessions->get(request.session_id);
    if (!session) co_return fail(std::move(session.error()));
    env = co_await (*session)->environment();
    cwd = (*session)->cwd();
  }
  for (const auto& [name, value] : request.exec.env) env[name] = value;
  if (request.exec.cwd) cwd = join_path(cwd, *request.exec.cwd);
  co_return Child::shell(app.runtime, request.exec.command, cwd, env);
}

std::string OutputText::feed(std::string_view bytes) {
  if (bytes.empty()) return {};
  return base64_ ? base64_encode(bytes) : decoder_.feed(bytes);
}

std::string OutputText::finish() {
  return base64_ ? std::string() : decoder_.finish();
}

std::span<const Route> command_routes() {
  return kCommandsRoutes;
}

}  // namespace sandboxd::agent
