#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <memory>

#include "sandboxd/agent/asio.hpp"
#include "sandboxd/agent/process.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

using asio::ip::tcp;
constexpr int kOwnPort = 3000;
constexpr auto kAttemptLimit = std::chrono::milliseconds(5000);
/// A check costs a connect to loopback: waiting longer between two would only add to every start.
constexpr auto kLongestPause = std::chrono::milliseconds(50);

struct PortWatch {
  int port = 0;
  bool http = true;
  std::string path = "/";
  int status_min = 200;
  int status_max = 399;
  std::chrono::milliseconds interval{500};
  std::shared_ptr<Process> process;
  std::shared_ptr<Cancellation> cancellation;
};

/// Status of one GET, 0 when nothing answered.
Task<int> http_status_of(tcp::socket& socket, const PortWatch& watch) {
  const std::string request = "GET " + watch.path +
                              " HTTP/1.1\r\nHost: localhost:" + std::to_string(watch.port) +
                              "\r\nUser-Agent: sandboxd\r\nAccept: */*\r\nConnection: close\r\n\r\n";
  const auto [write_error, written] = co_await asio::async_write(socket, asio::buffer(request), awaiting);
  if (write_error) co_return 0;
  std::string head;
  std::array<char, 256> chunk{};
  while (head.size() < 12) {
    const auto [error, count] = co_await socket.async_read_some(asio::buffer(chunk), awaiting);
    if (error) co_return 0;
    head.append(chunk.data(), count);
  }
  int status = 0;
  if (head.starts_with("HTTP/1.")) std::from_chars(head.data() + 9, head.data() + 12, status);
  co_return status;
}

Task<std::optional<int>> attempt(App& app, const PortWatch& watch, const char* address) {
  const auto socket = std::make_shared<tcp::socket>(app.runtime.io());
  asio::steady_timer limit(app.runtime.io(), kAttemptLimit);
  limit.async_wait([weak = std::weak_ptr<tcp::socket>(socket)](const boost::system::error_code& error) {
    boost::system::error_code ignored;
    if (const auto open = weak.lock(); open && !error) open->close(ignored);
  });
  const tcp::endpoint endpoint(asio::ip::make_address(address), static_cast<std::uint16_t>(watch.port));
  const auto [error] = co_await socket->async_connect(endpoint, awaiting);
  if (error) co_return std::nullopt;
  if (!watch.http) co_return 0;
  const int status = co_await http_status_of(*socket, watch);
  if (status == 0) co_return std::nullopt;
  co_return status;
}

bool is_ready(const PortWatch& watch, std::optional<int> status) {
  return status && (!watch.http || (*status >= watch.status_min && *status <= watch.status_max));
}

Task<void> pause(App& app, PortWatch& watch, std::chrono::milliseconds duration) {
  if (!watch.process) {
    co_await app.runtime.sleep(duration);
    co_return;
  }
  const auto guard = watch.cancellation->on_cancel([&watch] { watch.process->changed->notify(); });
  if (!watch.process->exit_code) co_await watch.process->changed->wait_until(Clock::now() + duration);
}

Task<void> watch_port(App& app, Sink& sink, std::shared_ptr<PortWatch> watch) {
  Json event = {{"type", "watching"}, {"port", watch->port}};
  if (!co_await send_event(sink, event)) co_return;
  auto wait = std::chrono::milliseconds(5);
  while (!watch->cancellation->fired()) {
    for (const char* address : {"127.0.0.1", "::1"}) {
      const auto status = co_await attempt(app, *watch, address);
      if (!is_ready(*watch, status)) continue;
      event = {{"type", "ready"}, {"port", watch->port}};
      if (watch->http) event["statusCode"] = *status;
      co_await send_event(sink, event);
      co_return;
    }
    if (watch->process && watch->process->exit_code) {
      event = {{"type", "process_exited"}, {"port", watch->port}, {"exitCode", *watch->process->exit_code}};
      co_await send_event(sink, event);
      co_return;
    }
    co_await pause(app, *watch, std::min(wait, watch->interval));
    wait = std::min(wait * 2, kLongestPause);
  }
}

Result<std::shared_ptr<PortWatch>> read_watch(const Json& body) {
  auto watch = std::make_shared<PortWatch>();
  auto port = optional_number(body, "port");
  if (!port) return fail(std::move(port.error()));
  const double number = port->value_or(0);
  if (!(number >= 1 && number <= 65535) || number != static_cast<int>(number) || number == kOwnPort) {
    AgentError error{"INVALID_PORT",
                     "A port is a whole number from 1 to 65535 other than 3000, the agent's own"};
    error.context = {{"port", port->has_value() ? body["port"] : Json()}, {"reason", "invalid or reserved"}};
    return fail(std::move(error));
  }
  watch->port = static_cast<int>(number);
  auto mode = optional_string(body, "mode");
  if (!mode) return fail(std::move(mode.error()));
  watch->http = mode->value_or("http") != "tcp";
  auto path = optional_string(body, "path");
  if (!path) return fail(std::move(path.error()));
  watch->path = path->value_or("/");
  if (!watch->path.starts_with('/')) watch->path.insert(0, "/");
  for (const char byte : watch->path) {
    if (static_cast<unsigned char>(byte) <= 0x20) return fail(invalid("path", "The path must be a URL path"));
  }
  for (auto [key, target] :
       {std::pair{"statusMin", &watch->status_min}, std::pair{"statusMax", &watch->status_max}}) {
    auto value = optional_number(body, key);
    if (!value) return fail(std::move(value.error()));
    if (*value) *target = static_cast<int>(**value);
  }
  auto interval = optional_timeout(body, "interval");
  if (!interval) return fail(std::move(interval.error()));
  watch->interval = interval->value_or(watch->interval);
  return watch;
}

Task<Result<Response>> port_watch(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto watch = read_watch(*body);
  if (!watch) co_return fail(std::move(watch.error()));
  auto process_id = optional_string(*body, "processId");
  if (!process_id) co_return fail(std::move(process_id.error()));
  if (*process_id) {
    auto process = app.processes->find(**process_id);
    if (!process) co_return fail(std::move(process.error()));
    (*watch)->process = *process;
  }
  (*watch)->cancellation = request.cancellation;
  App* owner = &app;
  co_return event_stream([owner, watch = *watch](Sink& sink) { return watch_port(*owner, sink, watch); });
}

constexpr Route kPortsRoutes[] = {
    {"POST", "/api/port-watch", port_watch},
};

}  // namespace

std::span<const Route> port_routes() {
  return kPortsRoutes;
}

}  // namespace sandboxd::agent
