#include "sandboxd/agent/server.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <charconv>
#include <memory>

#include "sandboxd/agent/asio.hpp"
#include "sandboxd/agent/message.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Parser = http::request_parser<http::buffer_body>;

constexpr std::uint16_t kOwnPort = 3000;
constexpr std::uint64_t kLargestBuffered = std::uint64_t{512} << 20U;
constexpr std::uint32_t kLargestHead = 64U << 10U;
constexpr std::size_t kBodyChunk = std::size_t{256} << 10U;
/// What one read of a body may bring: a buffer that has only held a head is read into by 4 KB.
constexpr std::size_t kReadBuffer = std::size_t{64} << 10U;

template <class... Buffers>
Task<bool> send(ControlSocket& socket, const Buffers&... parts) {
  const std::array<asio::const_buffer, sizeof...(parts)> buffers = {asio::buffer(parts)...};
  const auto [error, count] = co_await asio::async_write(socket, buffers, awaiting);
  co_return !error;
}

std::string_view reason(int status) {
  const auto text = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

std::string response_head(const Response& response, std::optional<std::uint64_t> length, bool keep_alive) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason(response.status)).append("\r\nContent-Type: ").append(response.content_type);
  for (const auto& [name, value] : response.headers)
    head.append("\r\n").append(name).append(": ").append(value);
  if (length) {
    head.append("\r\nContent-Length: ").append(std::to_string(*length));
  } else {
    head.append("\r\nTransfer-Encoding: chunked");
  }
  if (!keep_alive) head.append("\r\nConnection: close");
  head.append("\r\n\r\n");
  return head;
}

/// Notices, while a request is served, that its sender has hung up.
class HangupWatch {
 public:
  HangupWatch(ControlSocket& socket, std::shared_ptr<Cancellation> cancellation)
      : socket_(socket), state_(std::make_shared<State>(State{std::move(cancellation), true})) {
    socket_.async_wait(ControlSocket::wait_read,
                       [state = state_, fd = socket_.native_handle()](error_code error) {
                         if (error || !state->watching) return;
                         char byte = 0;
                         const auto count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
                         // Anything but an end is the next request, sent early.
                         if (count == 0) state->cancellation->fire();
                       });
  }
  HangupWatch(const HangupWatch&) = delete;
  HangupWatch& operator=(const HangupWatch&) = delete;
  ~HangupWatch() {
    state_->watching = false;
    error_code ignored;
    socket_.cancel(ignored);
  }

 private:
  struct State {
    std::shared_ptr<Cancellation> cancellation;
    bool watching;
  };
  ControlSocket& socket_;
  std::shared_ptr<State> state_;
};

class SocketSink : public Sink {
 public:
  SocketSink(ControlSocket& socket, bool chunked) : socket_(socket), chunked_(chunked) {}
  Task<bool> write(std::string_view bytes) override {
    if (bytes.empty()) co_return true;
    written_ += bytes.size();
    if (!chunked_) co_return co_await send(socket_, bytes);
    std::array<char, 20> size{};
    char* end = std::to_chars(size.data(), size.data() + size.size() - 2, bytes.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    const std::string_view head(size.data(), static_cast<std::size_t>(end - size.data()));
    co_return co_await send(socket_, head, bytes, std::string_view("\r\n"));
  }

  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  ControlSocket& socket_;
  bool chunked_;
  std::uint64_t written_ = 0;
};

/// The body of a request as it arrives.
class BodySource : public Source {
 public:
  BodySource(ControlSocket& socket, beast::flat_buffer& buffer, Parser& parser)
      : socket_(socket), buffer_(buffer), parser_(parser) {}
  Task<Result<std::string_view>> read() override {
    if (chunk_.empty()) chunk_.resize(kBodyChunk);
    auto got = co_await read_into(chunk_.data(), chunk_.size());
    if (!got) co_return fail(std::move(got.error()));
    co_return std::string_view(chunk_.data(), *got);
  }
  /// 0 at the end.
  Task<Result<std::size_t>> read_into(char* data, std::size_t size) {
    if (parser_.is_done()) co_return std::size_t{0};
    buffer_.reserve(kReadBuffer);
    parser_.get().body().data = data;
    parser_.get().body().size = size;
    parser_.get().body().more = true;
    while (!parser_.is_done() && parser_.get().body().size != 0) {
      const auto [error, count] = co_await http::async_read_some(socket_, buffer_, parser_, awaiting);
      if (error && error != http::error::need_buffer) {
        co_return fail(
            AgentError{"OPERATION_INTERRUPTED", "The request body ended early: " + error.message()});
      }
      // What has come is handed on at once, but for many small pieces.
      if (size - parser_.get().body().size >= size / 2) break;
    }
    co_return size - parser_.get().body().size;
  }

 private:
  ControlSocket& socket_;
  beast::flat_buffer& buffer_;
  Parser& parser_;
  std::string chunk_;
};

Task<Result<std::string>> read_body(BodySource& source, const Parser& parser) {
  std::string body;
  const auto length = parser.content_length();
  if (length && *length > kLargestBuffered) {
    co_return fail(AgentError{"FILE_TOO_LARGE", "The request body is larger than 512 MiB; stream it"});
  }
  std::size_t used = 0;
  body.resize(length ? static_cast<std::size_t>(*length) : 0);
  while (!parser.is_done()) {
    if (body.size() == used) body.resize(std::max(used * 2, kBodyChunk));
    auto count = co_await source.read_into(body.data() + used, body.size() - used);
    if (!count) co_return fail(std::move(count.error()));
    used += *count;
    if (used > kLargestBuffered) {
      co_return fail(AgentError{"FILE_TOO_LARGE", "The request body is larger than 512 MiB; stream it"});
    }
  }
  body.resize(used);
  co_return body;
}

Task<bool> send_response(ControlSocket& socket, Response& response, bool keep_alive) {
  if (!response.stream) {
    const std::string head = response_head(response, response.body.size(), keep_alive);
    co_return co_await send(socket, head, response.body);
  }
  const std::string head = response_head(response, response.length, keep_alive);
  if (!co_await send(socket, head)) co_return false;
  SocketSink sink(socket, !response.length);
  co_await response.stream(sink);
  // Fewer bytes than were promised: only the end of the connection can say so.
  if (response.length) co_return sink.written() == *response.length;
  co_return co_await send(socket, std::string_view("0\r\n\r\n"));
}

void split_target(std::string_view target, Request& request) {
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = std::string(target.substr(0, mark));
  request.query = parse_query(target.substr(std::min(mark + 1, target.size())));
}

/// Answers one request; false when the connection is to be closed.
Task<bool> serve_request(App& app, ControlSocket& socket, beast::flat_buffer& buffer, Parser& parser) {
  Request request;
  const auto method = parser.get().method_string();
  request.method = std::string(method.data(), method.size());
  const auto target = parser.get().target();
  split_target({target.data(), target.size()}, request);
  const auto found = find_route(request.method, request.path);
  request.parameter = found.parameter;
  if (parser.get()[http::field::expect] == "100-continue" &&
      !co_await send(socket, std::string_view("HTTP/1.1 100 Continue\r\n\r\n"))) {
    co_return false;
  }
  BodySource source(socket, buffer, parser);
  const bool streams = found.route != nullptr && found.route->streams_body;
  Response response;
  bool keep_alive = parser.keep_alive();
  if (streams) {
    request.source = &source;
    response = co_await dispatch(app, found.route, request);
    // A sender that is cut off in the middle would not read why.
    while (!parser.is_done()) {
      const auto rest = co_await source.read();
      if (!rest) break;
    }
    keep_alive = keep_alive && parser.is_done();
    co_return co_await send_response(socket, response, keep_alive) && keep_alive;
  }
  auto body = co_await read_body(source, parser);
  if (!body) {
    response = error_response(body.error());
    co_await send_response(socket, response, false);
    co_return false;
  }
  request.body = std::move(*body);
  const HangupWatch watch(socket, request.cancellation);
  response = co_await dispatch(app, found.route, request);
  co_return co_await send_response(socket, response, keep_alive) && keep_alive &&
      !request.cancellation->fired();
}

Upgrade take_upgrade(const Parser& parser, const beast::flat_buffer& buffer) {
  Upgrade upgrade;
  const auto& message = parser.get();
  const auto text = [](auto view) { return std::string_view(view.data(), view.size()); };
  upgrade.head.append("GET ").append(text(message.target())).append(" HTTP/1.1\r\n");
  for (const auto& field : message) {
    upgrade.head.append(text(field.name_string())).append(": ").append(text(field.value())).append("\r\n");
  }
  upgrade.head.append("\r\n");
  const auto data = buffer.data();
  upgrade.rest = std::string(static_cast<const char*>(data.data()), data.size());
  const auto target = parser.get().target();
  Request request;
  split_target({target.data(), target.size()}, request);
  upgrade.path = std::move(request.path);
  upgrade.query = std::move(request.query);
  return upgrade;
}

Task<void> serve_http(App& app, ControlSocket socket, std::string first) {
  beast::flat_buffer buffer;
  const auto copied = asio::buffer_copy(buffer.prepare(first.size()), asio::buffer(first));
  buffer.commit(copied);
  while (true) {
    Parser parser;
    parser.header_limit(kLargestHead);
    parser.body_limit(boost::none);
    const auto [error, count] = co_await http::async_read_header(socket, buffer, parser, awaiting);
    if (error == http::error::end_of_stream || error == asio::error::operation_aborted) co_return;
    if (error) {
      AgentError bad{"VALIDATION_FAILED", "The request is no HTTP/1.1: " + error.message()};
      auto response = error_response(bad);
      co_await send_response(socket, response, false);
      co_return;
    }
    if (beast::websocket::is_upgrade(parser.get())) {
      auto upgrade = take_upgrade(parser, buffer);
      co_await serve_websocket(app, std::move(socket), std::move(upgrade));
      co_return;
    }
    const bool goes_on = co_await serve_request(app, socket, buffer, parser);
    // Whoever waited for the container has heard of it, and asks for a session next.
    app.sessions->prepare();
    if (!goes_on) co_return;
  }
}

}  // namespace

Task<void> serve_connection(App& app, ControlSocket socket) {
  std::string first;
  const auto [error, count] =
      co_await asio::async_read_until(socket, asio::dynamic_buffer(first, 65536), '\n', awaiting);
  if (error) co_return;
  const auto port = parse_port_line(std::string_view(first).substr(0, count - 1));
  if (!port) {
    co_await send(socket, std::string_view("ERR EINVAL\n"));
    co_return;
  }
  first.erase(0, count);
  if (*port != kOwnPort) {
    co_await serve_port(app, std::move(socket), *port, std::move(first));
    co_return;
  }
  if (!co_await send(socket, std::string_view("OK\n"))) co_return;
  co_await serve_http(app, std::move(socket), std::move(first));
}

}  // namespace sandboxd::agent
