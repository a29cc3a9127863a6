#include "sandboxd/agent/context.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

struct LanguageRow {
  std::string_view name;
  Language language;
};
constexpr std::array kLanguages = {
    LanguageRow{"python", Language::python},         LanguageRow{"py", Language::python},
    LanguageRow{"javascript", Language::javascript}, LanguageRow{"js", Language::javascript},
    LanguageRow{"node", Language::javascript},       LanguageRow{"typescript", Language::typescript},
    LanguageRow{"ts", Language::typescript},
};

/// How long an interrupted interpreter may take to come back before it is ended.
constexpr auto kInterruptGrace = std::chrono::milliseconds(1000);

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Context::Run {
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<Clock::time_point> deadline;
  std::shared_ptr<Cancellation> cancellation;
  Utf8Decoder out;
  Utf8Decoder err;
  std::string events;
  bool complete = false;
  bool timed_out = false;
};

std::optional<Language> parse_language(std::string_view name) {
  for (const auto& row : kLanguages) {
    if (row.name == name) return row.language;
  }
  return std::nullopt;
}

std::string_view language_name(Language language) {
  switch (language) {
    case Language::python:
      return "python";
    case Language::javascript:
      return "javascript";
    case Language::typescript:
      return "typescript";
  }
  return "python";
}

Context::Context(Runtime& runtime, ContextOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      mutex_(runtime.executor()),
      created_at_(iso_timestamp()),
      used_at_(created_at_) {}

Result<void> Context::start() {
  if (child_ && !child_->exit_code()) return {};
  auto env = runtime_.base_env();
  env["MPLBACKEND"] = "Agg";
  for (const auto& [name, value] : options_.env) env[name] = value;
  const bool python = options_.language == Language::python;
  const std::string program = find_program(python ? "python3" : "node", env["PATH"]);
  if (program.empty()) {
    AgentError error{
        python ? "PYTHON_NOT_AVAILABLE" : "JAVASCRIPT_NOT_AVAILABLE",
        python ? "python3 is not installed in this sandbox" : "node is not installed in this sandbox"};
    error.context = {{"language", language_name(options_.language)}};
    return fail(std::move(error));
  }
  auto requests = make_pipe();
  if (!requests) return fail(std::move(requests.error()));
  auto events = make_pipe();
  if (!events) return fail(std::move(events.error()));
  ::fcntl(requests->read.get(), F_SETFL, 0);
  ::fcntl(requests->write.get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  request.argv = {program, python ? "-c" : "-e", std::string(python ? python_driver() : javascript_driver())};
  request.env = env_list(env);
  request.cwd = options_.cwd;
  request.fds = {{requests->read.get(), 3}, {events->write.get(), 4}};
  auto child = Child::start(runtime_, std::move(request));
  if (!child) return fail(std::move(child.error()));
  child_ = std::move(*child);
  requests_ = std::make_shared<FdWatch>(runtime_.executor(), std::move(requests->write));
  auto notifier = std::shared_ptr<Notifier>(child_, &child_->changed());
  events_ = std::make_shared<OutputPump>(runtime_.executor(), std::move(events->read), std::move(notifier));
  events_->start();
  return {};
}

Json Context::describe() const {
  return {{"id", options_.id},
          {"language", language_name(options_.language)},
          {"cwd", options_.cwd},
          {"createdAt", created_at_},
          {"lastUsed", used_at_}};
}

void Context::end() {
  if (child_ && !child_->exit_code()) child_->terminate();
}

Task<bool> Context::send_text(Sink& sink, const char* type, std::string text) {
  if (text.empty()) co_return true;
  const Json event = {{"type", type}, {"text", std::move(text)}, {"timestamp", now_ms()}};
  co_return co_await send_event(sink, event);
}

Task<bool> Context::send_line(Sink& sink, Run& run, const std::string& line) {
  Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) co_return true;
  if (event["type"] == "execution_complete") {
    run.complete = true;
    co_return true;
  }
  event["timestamp"] = now_ms();
  co_return co_await send_event(sink, event);
}

/// Sends what has come. Printed text goes first: the interpreter flushes before it tells an event.
Task<bool> Context::pump(Sink& sink, Run& run) {
  events_->drain();
  run.events += events_->take();
  child_->out().drain();
  child_->err().drain();
  if (!co_await send_text(sink, "stdout", run.out.feed(child_->out().take()))) co_return false;
  if (!co_await send_text(sink, "stderr", run.err.feed(child_->err().take()))) co_return false;
  for (std::size_t end = run.events.find('\n'); end != std::string::npos; end = run.events.find('\n')) {
    const std::string line = run.events.substr(0, end);
    run.events.erase(0, end + 1);
    if (!co_await send_line(sink, run, line)) co_return false;
  }
  co_return true;
}

/// Python takes an interrupt and keeps its variables; node has to be ended, and starts afresh with the next
/// run.
Task<void> Context::interrupt(Run& run) {
  if (options_.language == Language::python) {
    ::kill(child_->pid(), SIGINT);
    const auto until = Clock::now() + kInterruptGrace;
    while (!run.complete && !child_->exit_code() && Clock::now() < until) {
      events_->drain();
      run.events += events_->take();
      if (run.events.find("\"execution_complete\"") != std::string::npos) co_return;
      co_await child_->changed().wait_until(until);
    }
  }
  if (!child_->exit_code()) child_->terminate();
}

Task<void> Context::run(Sink& sink, std::string code, std::optional<std::chrono::milliseconds> timeout,
                        std::shared_ptr<Cancellation> cancellation) {
  const auto self = shared_from_this();
  const auto lock = co_await mutex_.lock();
  used_at_ = iso_timestamp();
  Run run{timeout, std::nullopt, std::move(cancellation), {}, {}, {}, false, false};
  if (timeout) run.deadline = Clock::now() + *timeout;
  if (auto started = start(); !started) {
    const Json event = {{"type", "error"},
                        {"ename", started.error().code},
                        {"evalue", started.error().message},
                        {"traceback", Json::array()}};
    co_await send_event(sink, event);
    co_return;
  }
  const auto child = child_;
  const Json request = {{"code", std::move(code)}, {"typescript", options_.language == Language::typescript}};
  const std::string line = request.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  std::string_view rest = line;
  const auto guard = run.cancellation->on_cancel([child] { child->changed().notify(); });
  bool stopping = false;
  while (!run.complete && !child->settled()) {
    if (!rest.empty()) {
      const ssize_t count = ::write(requests_->fd(), rest.data(), rest.size());
      if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
      if (count < 0 && errno == EAGAIN && !co_await requests_->writable()) break;
      if (count < 0 && errno != EAGAIN && errno != EINTR) break;
      continue;
    }
    const auto look = child->changed().look();
    const bool there = co_await pump(sink, run);
    if (run.complete) break;
    const bool late = run.deadline && Clock::now() >= *run.deadline;
    if (!stopping && (late || !there || run.cancellation->fired())) {
      stopping = true;
      run.timed_out = late;
      run.deadline.reset();
      co_await interrupt(run);
      continue;
    }
    co_await child->changed().wait_since(look, child->exit_code() ? child->settles_at() : run.deadline);
  }
  co_await finish(sink, run);
}

Task<void> Context::finish(Sink& sink, Run& run) {
  if (!co_await pump(sink, run)) co_return;
  Json event;
  if (run.timed_out) {
    event = {{"type", "error"},
             {"ename", "TimeoutError"},
             {"evalue", "Execution timed out after " + std::to_string(run.timeout->count()) + "ms"},
             {"traceback", Json::array()}};
    co_await send_event(sink, event);
  } else if (!run.complete) {
    const int status = child_->exit_code().value_or(-1);
    event = {{"type", "error"},
             {"ename", "InterpreterExited"},
             {"evalue",
              "The interpreter exited with status " + std::to_string(status) + "; its variables are lost"},
             {"traceback", Json::array()}};
    co_await send_event(sink, event);
  }
  ++runs_;
  event = {{"type", "execution_complete"}, {"execution_count", runs_}, {"timestamp", now_ms()}};
  co_await send_event(sink, event);
}

Result<std::shared_ptr<Context>> Contexts::create(ContextOptions options) {
  auto context = std::make_shared<Context>(runtime_, std::move(options));
  if (auto started = context->start(); !started) return fail(std::move(started.error()));
  contexts_[context->options().id] = context;
  return context;
}

Result<std::shared_ptr<Context>> Contexts::find(const std::string& id) const {
  const auto found = contexts_.find(id);
  if (found != contexts_.end()) return found->second;
  AgentError error{"CONTEXT_NOT_FOUND", "There is no context '" + id + "'"};
  error.context = {{"contextId", id}};
  return fail(std::move(error));
}

Result<std::shared_ptr<Context>> Contexts::shared(Language language) {
  const std::string id = "default-" + std::string(language_name(language));
  if (const auto found = contexts_.find(id); found != contexts_.end()) return found->second;
  return create({id, language, runtime_.config().workspace, {}});
}

bool Contexts::remove(const std::string& id) {
  const auto found = contexts_.extract(id);
  if (found.empty()) return false;
  found.mapped()->end();
  return true;
}

std::vector<std::shared_ptr<Context>> Contexts::all() const {
  std::vector<std::shared_ptr<Context>> out;
  for (const auto& [id, context] : contexts_) out.push_back(context);
  return out;
}

}  // namespace sandboxd::agent
