#include "sandboxd/agent/process.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kStreamPiece = std::size_t{48} << 10U;
constexpr std::size_t kLongestId = 256;

Task<Result<Response>> start_process(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto command = read_command(*body);
  if (!command) co_return fail(std::move(command.error()));
  auto wanted = optional_string(*body, "processId");
  if (!wanted) co_return fail(std::move(wanted.error()));
  const std::string id = *wanted ? **wanted : random_id("proc_");
  if (id.empty() || id.size() > kLongestId || id.find('/') != std::string::npos ||
      id.find('\0') != std::string::npos) {
    co_return fail(invalid("processId", "A process id has 1 to 256 bytes and no slash"));
  }
  auto process = co_await app.processes->start(app, std::move(*command), id);
  if (!process) co_return fail(std::move(process.error()));
  co_return json_response({{"success", true},
                           {"processId", id},
                           {"pid", (*process)->child->pid()},
                           {"command", (*process)->request.exec.command},
                           {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> list_processes(App& app, Request&) {
  Json list = Json::array();
  for (const auto& process : app.processes->all()) list.push_back(process->describe());
  const auto count = list.size();
  co_return json_response(
      {{"success", true}, {"processes", std::move(list)}, {"count", count}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> get_process(App& app, Request& request) {
  auto process = app.processes->find(request.parameter);
  if (!process) co_return fail(std::move(process.error()));
  co_return json_response(
      {{"success", true}, {"process", (*process)->describe()}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> kill_process(App& app, Request& request) {
  auto process = app.processes->find(request.parameter);
  if (!process) co_return fail(std::move(process.error()));
  co_await app.processes->kill(*process);
  co_return json_response({{"success", true},
                           {"processId", request.parameter},
                           {"signal", "SIGTERM"},
                           {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> kill_all(App& app, Request&) {
  std::size_t killed = 0;
  const auto processes = app.processes->all();
  for (const auto& process : processes) {
    if (process->exit_code) continue;
    ++killed;
    process->killed = true;
    process->child->terminate();
  }
  for (const auto& process : processes) co_await app.processes->kill(process);
  co_return json_response({{"success", true},
                           {"message", "Ended " + std::to_string(killed) + " processes"},
                           {"killedCount", killed},
                           {"cleanedCount", killed},
                           {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> process_logs(App& app, Request& request) {
  auto process = app.processes->find(request.parameter);
  if (!process) co_return fail(std::move(process.error()));
  const auto& log = (*process)->log;
  co_return json_response({{"success", true},
                           {"processId", request.parameter},
                           {"stdout", log.all(OutputLog::Stream::out)},
                           {"stderr", log.all(OutputLog::Stream::err)},
                           {"timestamp", iso_timestamp()}});
}

Json log_event(const Process& process, const char* type, std::string data) {
  Json event = {
      {"type", type}, {"timestamp", iso_timestamp()}, {"data", std::move(data)}, {"processId", process.id}};
  if (!is_sessionless(process.request.session_id)) event["sessionId"] = process.request.session_id;
  return event;
}

/// Says at once what is streamed: over a WebSocket the SDK's call settles with the first event, and a process
/// may be silent.
Json info_event(const Process& process) {
  Json event = process.describe();
  event["type"] = "process_info";
  event["processId"] = process.id;
  event["timestamp"] = iso_timestamp();
  return event;
}

/// Everything from the beginning, then what comes, then the end.
Task<void> stream_log(Sink& sink, std::shared_ptr<Process> process,
                      std::shared_ptr<Cancellation> cancellation) {
  const auto guard = cancellation->on_cancel([process] { process->changed->notify(); });
  auto info = info_event(*process);
  if (!co_await send_event(sink, info)) co_return;
  std::uint64_t offset = 0;
  Utf8Decoder decoder;
  while (!cancellation->fired()) {
    auto piece = process->log.read(offset, kStreamPiece);
    if (piece.text.empty()) {
      if (process->exit_code) break;
      co_await process->changed->wait();
      continue;
    }
    offset += piece.text.size();
    const char* type = piece.stream == OutputLog::Stream::out ? "stdout" : "stderr";
    auto event = log_event(*process, type, decoder.feed(piece.text));
    if (!co_await send_event(sink, event)) co_return;
  }
  if (cancellation->fired()) co_return;
  auto event = log_event(*process, "exit", "");
  event["exitCode"] = *process->exit_code;
  co_await send_event(sink, event);
}

Task<Result<Response>> process_stream(App& app, Request& request) {
  auto process = app.processes->find(request.parameter);
  if (!process) co_return fail(std::move(process.error()));
  co_return event_stream([process = *process, cancellation = request.cancellation](Sink& sink) {
    return stream_log(sink, process, cancellation);
  });
}

constexpr Route kProcessRoutes[] = {
    {"POST", "/api/process/start", start_process},     {"GET", "/api/process/list", list_processes},
    {"DELETE", "/api/process/kill-all", kill_all},     {"GET", "/api/process/{}/logs", process_logs},
    {"GET", "/api/process/{}/stream", process_stream}, {"GET", "/api/process/{}", get_process},
    {"DELETE", "/api/process/{}", kill_process},
};

}  // namespace

std::span<const Route> process_routes() {
  return kProcessRoutes;
}

}  // namespace sandboxd::agent
