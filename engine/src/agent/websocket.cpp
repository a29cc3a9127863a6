#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <memory>

#include "sandboxd/agent/asio.hpp"
#include "sandboxd/agent/server.hpp"

namespace sandboxd::agent {
namespace {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using Stream = websocket::stream<ControlSocket>;

constexpr std::size_t kLargestMessage = std::size_t{192} << 20U;

class BeastPeer : public WebSocketPeer {
 public:
  BeastPeer(Stream& stream, asio::any_io_executor executor)
      : stream_(stream), sending_(std::move(executor)) {}

  Task<std::optional<Message>> receive() override {
    beast::flat_buffer buffer;
    const auto [error, count] = co_await stream_.async_read(buffer, awaiting);
    if (error) {
      gone_ = true;
      co_return std::nullopt;
    }
    const auto data = buffer.data();
    co_return Message{stream_.got_binary(), std::string(static_cast<const char*>(data.data()), data.size())};
  }

  Task<bool> send(std::string data, bool binary) override {
    const auto lock = co_await sending_.lock();
    if (gone_) co_return false;
    stream_.binary(binary);
    const auto [error, count] = co_await stream_.async_write(asio::buffer(data), awaiting);
    if (error) gone_ = true;
    co_return !error;
  }

  Task<void> close(std::uint16_t code, std::string reason) override {
    const auto lock = co_await sending_.lock();
    if (gone_) co_return;
    gone_ = true;
    websocket::close_reason why(code);
    why.reason.assign(reason.data(), std::min<std::size_t>(reason.size(), 120));
    co_await stream_.async_close(why, awaiting);
  }

 private:
  Stream& stream_;
  Mutex sending_;
  bool gone_ = false;
};

Task<void> refuse(ControlSocket& socket, std::string_view path) {
  AgentError error{"UNKNOWN_ERROR", "There is no WebSocket at " + std::string(path)};
  const std::string body = error_body(error);
  const std::string head =
      "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n";
  const std::string text = head + body;
  co_await asio::async_write(socket, asio::buffer(text), awaiting);
}

}  // namespace

Task<void> serve_websocket(App& app, ControlSocket socket, Upgrade upgrade) {
  const bool terminal = upgrade.path == "/ws/pty";
  if (!terminal && upgrade.path != "/ws") {
    co_await refuse(socket, upgrade.path);
    co_return;
  }
  Stream stream(std::move(socket));
  stream.read_message_max(kLargestMessage);
  stream.auto_fragment(false);
  const std::string first = upgrade.head + upgrade.rest;
  const auto [error] = co_await stream.async_accept(asio::buffer(first), awaiting);
  if (error) co_return;
  BeastPeer peer(stream, app.runtime.executor());
  if (terminal) {
    co_await serve_terminal(app, peer, upgrade.query);
  } else {
    co_await serve_multiplex(app, peer);
  }
}

}  // namespace sandboxd::agent
