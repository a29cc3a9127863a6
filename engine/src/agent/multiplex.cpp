#include <memory>
#include <unordered_map>

#include "sandboxd/agent/message.hpp"
#include "sandboxd/agent/server.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

/// The requests that are being answered on one connection.
struct Multiplex {
  explicit Multiplex(App& owner, WebSocketPeer& socket)
      : app(owner), peer(socket), idle(owner.runtime.executor()) {}
  App& app;
  WebSocketPeer& peer;
  Notifier idle;
  std::unordered_map<std::string, std::shared_ptr<Cancellation>> running;
};

std::string message_head(const char* type, std::string_view id) {
  std::string text = std::string("{\"type\":\"") + type + "\",\"id\":";
  append_json_string(text, id);
  return text;
}

std::string error_message(std::string_view id, const AgentError& error) {
  Json message = {{"type", "error"},
                  {"code", error.code},
                  {"message", error.message},
                  {"status", http_status(error.code)},
                  {"context", error.context}};
  if (!id.empty()) message["id"] = id;
  return message.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Turns each server-sent event into one message.
class MessageSink : public Sink {
 public:
  MessageSink(WebSocketPeer& peer, std::string_view id, Cancellation& cancellation)
      : peer_(peer), id_(id), cancellation_(cancellation) {}
  Task<bool> write(std::string_view bytes) override {
    constexpr std::string_view kField = "data: ";
    if (bytes.starts_with(kField)) bytes.remove_prefix(kField.size());
    while (bytes.ends_with('\n')) bytes.remove_suffix(1);
    if (cancellation_.fired()) co_return false;
    std::string text = message_head("stream", id_);
    text.append(",\"data\":");
    append_json_string(text, bytes);
    text.push_back('}');
    co_return co_await peer_.send(std::move(text), false);
  }

 private:
  WebSocketPeer& peer_;
  std::string_view id_;
  Cancellation& cancellation_;
};

Task<void> answer(Multiplex& all, const std::string& id, const Route* route, Request& request) {
  auto response = co_await dispatch(all.app, route, request);
  if (response.stream) {
    MessageSink sink(all.peer, id, *request.cancellation);
    co_await response.stream(sink);
    response.body = "null";
  }
  if (request.cancellation->fired()) co_return;
  std::string text = message_head("response", id);
  text.append(",\"status\":").append(std::to_string(response.status)).append(",\"body\":");
  if (response.content_type == "application/json" || response.body == "null") {
    text.append(response.body);
  } else {
    append_json_string(text, to_utf8(std::move(response.body)));
  }
  text.append(",\"done\":true}");
  co_await all.peer.send(std::move(text), false);
}

Task<void> run_request(std::shared_ptr<Multiplex> all, std::string id, Request request) {
  const std::size_t mark = std::min(request.path.find('?'), request.path.size());
  request.query = parse_query(std::string_view(request.path).substr(std::min(mark + 1, request.path.size())));
  request.path.resize(mark);
  const auto found = find_route(request.method, request.path);
  request.parameter = found.parameter;
  if (found.route != nullptr && found.route->streams_body) {
    const AgentError error{"VALIDATION_FAILED", "This route is for HTTP only"};
    co_await all->peer.send(error_message(id, error), false);
  } else {
    co_await answer(*all, id, found.route, request);
  }
  all->running.erase(id);
  all->idle.notify();
}

}  // namespace

Task<void> serve_multiplex(App& app, WebSocketPeer& peer) {
  const auto all = std::make_shared<Multiplex>(app, peer);
  while (true) {
    auto received = co_await peer.receive();
    if (!received) break;
    const auto message = split_message(received->data);
    if (!message || message->id.empty()) {
      const AgentError error{"VALIDATION_FAILED", "A message must be a JSON object with type and id"};
      co_await peer.send(error_message("", error), false);
      continue;
    }
    const auto known = all->running.find(message->id);
    if (message->type == "cancel") {
      if (known != all->running.end()) known->second->fire();
      continue;
    }
    if (message->type != "request" || known != all->running.end()) {
      const AgentError error{"VALIDATION_FAILED", "A message's type is request or cancel, and its id is new"};
      co_await peer.send(error_message(message->id, error), false);
      continue;
    }
    Request request;
    request.method = message->method.empty() ? "POST" : message->method;
    request.path = message->path;
    request.body = std::string(message->body);
    all->running[message->id] = request.cancellation;
    app.runtime.detach(run_request(all, message->id, std::move(request)));
  }
  // The peer outlives everything that may still send to it.
  const auto running = all->running;
  for (const auto& [id, cancellation] : running) cancellation->fire();
  while (!all->running.empty()) co_await all->idle.wait();
}

}  // namespace sandboxd::agent
