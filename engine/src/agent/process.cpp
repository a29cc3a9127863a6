#include "sandboxd/agent/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kMemoryLimit = std::size_t{256} << 10U;
constexpr std::size_t kMostFinished = 500;
constexpr auto kKillWait = std::chrono::milliseconds(11000);

UniqueFd anonymous_file() {
  for (const char* folder : {"/var/tmp", "/tmp"}) {
    UniqueFd fd(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd) return fd;
  }
  return {};
}

}  // namespace

void OutputLog::append(Stream stream, std::string_view text) {
  if (text.empty()) return;
  if (segments_.empty() || segments_.back().stream != stream) segments_.push_back({size_, stream});
  size_ += text.size();
  memory_.append(text);
  if (memory_.size() >= kMemoryLimit) spill();
}

void OutputLog::spill() {
  if (!file_) file_ = anonymous_file();
  if (!file_) return;
  std::string_view rest = memory_;
  auto at = static_cast<off_t>(size_ - memory_.size());
  while (!rest.empty()) {
    const ssize_t count = ::pwrite(file_.get(), rest.data(), rest.size(), at);
    if (count <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(count));
    at += count;
  }
  // What found no room on the disk stays in memory.
  memory_.erase(0, memory_.size() - rest.size());
}

std::string OutputLog::bytes(std::uint64_t offset, std::size_t length) const {
  std::string out;
  const std::uint64_t in_file = size_ - memory_.size();
  if (offset < in_file) {
    out.resize(static_cast<std::size_t>(std::min<std::uint64_t>(length, in_file - offset)));
    const ssize_t count = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return out;
  }
  return memory_.substr(static_cast<std::size_t>(offset - in_file), length);
}

OutputLog::Piece OutputLog::read(std::uint64_t offset, std::size_t limit) const {
  if (offset >= size_) return {};
  auto next = std::ranges::upper_bound(segments_, offset, {}, &Segment::start);
  const Stream stream = std::prev(next)->stream;
  const std::uint64_t end = next == segments_.end() ? size_ : next->start;
  return {stream, bytes(offset, static_cast<std::size_t>(std::min<std::uint64_t>(limit, end - offset)))};
}

std::string OutputLog::all(Stream stream) const {
  std::string out;
  for (std::uint64_t offset = 0; offset < size_;) {
    auto piece = read(offset, kMemoryLimit);
    if (piece.text.empty()) break;
    offset += piece.text.size();
    if (piece.stream == stream) out += piece.text;
  }
  return out;
}

std::string_view Process::status() const {
  if (killed) return "killed";
  if (!exit_code) return "running";
  return *exit_code == 0 ? "completed" : "failed";
}

Json Process::describe() const {
  Json out = {{"id", id},
              {"pid", child->pid()},
              {"command", request.exec.command},
              {"status", status()},
              {"startTime", started_at}};
  if (!is_sessionless(request.session_id)) out["sessionId"] = request.session_id;
  if (exit_code) {
    out["endTime"] = ended_at;
    out["exitCode"] = *exit_code;
  }
  return out;
}

Task<Result<std::shared_ptr<Process>>> Processes::start(App& app, CommandRequest request, std::string id) {
  if (const auto found = processes_.find(id); found != processes_.end() && !found->second->exit_code) {
    AgentError error{"PROCESS_ERROR", "A process with the id '" + id + "' is running already"};
    error.context = {{"processId", id}};
    co_return fail(std::move(error));
  }
  auto child = co_await start_in_session(app, request);
  if (!child) co_return fail(std::move(child.error()));
  auto process = std::make_shared<Process>();
  process->id = id;
  process->request = std::move(request);
  process->child = *child;
  process->started_at = iso_timestamp();
  process->changed = std::make_unique<Notifier>(runtime_.executor());
  processes_[id] = process;
  std::erase(order_, id);
  order_.push_back(id);
  forget_oldest();
  runtime_.detach(follow(process));
  co_return process;
}

Task<void> Processes::follow(std::shared_ptr<Process> process) {
  auto& child = *process->child;
  const bool base64 = process->request.encoding == "base64";
  OutputText out(base64);
  OutputText err(base64);
  std::optional<Clock::time_point> deadline;
  const auto timeout = process->request.exec.timeout;
  if (timeout) deadline = Clock::now() + *timeout;
  while (true) {
    const bool last = child.settled();
    if (last) {
      child.out().drain();
      child.err().drain();
    }
    process->log.append(OutputLog::Stream::out, out.feed(child.out().take()));
    process->log.append(OutputLog::Stream::err, err.feed(child.err().take()));
    process->changed->notify();
    if (last) break;
    if (!child.exit_code() && deadline && Clock::now() >= *deadline) {
      deadline.reset();
      process->log.append(OutputLog::Stream::err, timeout_line(*timeout));
      process->killed = true;
      child.terminate();
    }
    if (!child.settled())
      co_await child.changed().wait_until(child.exit_code() ? child.settles_at() : deadline);
  }
  process->log.append(OutputLog::Stream::out, out.finish());
  process->log.append(OutputLog::Stream::err, err.finish());
  child.abandon_output();
  process->ended_at = iso_timestamp();
  process->exit_code = child.exit_code();
  process->changed->notify();
}

Result<std::shared_ptr<Process>> Processes::find(const std::string& id) const {
  const auto found = processes_.find(id);
  if (found != processes_.end()) return found->second;
  AgentError error{"PROCESS_NOT_FOUND", "There is no process '" + id + "'"};
  error.context = {{"processId", id}};
  return fail(std::move(error));
}

std::vector<std::shared_ptr<Process>> Processes::all() const {
  std::vector<std::shared_ptr<Process>> out;
  for (const auto& id : order_) out.push_back(processes_.at(id));
  return out;
}

Task<void> Processes::kill(std::shared_ptr<Process> process) {
  if (process->exit_code) co_return;
  process->killed = true;
  process->child->terminate();
  const auto until = Clock::now() + kKillWait;
  while (!process->exit_code && Clock::now() < until) co_await process->changed->wait_until(until);
}

void Processes::forget_oldest() {
  auto finished = static_cast<std::size_t>(std::ranges::count_if(
      order_, [&](const auto& id) { return processes_.at(id)->exit_code.has_value(); }));
  for (auto id = order_.begin(); finished > kMostFinished && id != order_.end();) {
    if (!processes_.at(*id)->exit_code) {
      ++id;
      continue;
    }
    processes_.erase(*id);
    id = order_.erase(id);
    --finished;
  }
}

}  // namespace sandboxd::agent
