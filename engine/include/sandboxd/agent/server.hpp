#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sandboxd/agent/app.hpp"

namespace sandboxd::agent {

using ControlSocket = asio::local::stream_protocol::socket;

/// Serves one control connection from its `PORT <n>` line to its end.
Task<void> serve_connection(App& app, ControlSocket socket);

/// Joins a control connection to a TCP server inside the sandbox. `first` was read already.
Task<void> serve_port(App& app, ControlSocket socket, std::uint16_t port, std::string first);

/// A request that asks for a WebSocket, as the HTTP side hands it over.
struct Upgrade {
  std::string head;  ///< the request's head as it was sent, with the empty line
  std::string rest;  ///< bytes that came after it
  std::string path;
  std::map<std::string, std::string> query;
};
/// Accepts the WebSocket and serves `/ws` or `/ws/pty` on it.
Task<void> serve_websocket(App& app, ControlSocket socket, Upgrade upgrade);

/// One accepted WebSocket.
class WebSocketPeer {
 public:
  struct Message {
    bool binary = false;
    std::string data;
  };
  virtual ~WebSocketPeer() = default;
  virtual Task<std::optional<Message>> receive() = 0;
  /// Messages go out whole and in order whoever sends; false when the peer is gone.
  virtual Task<bool> send(std::string data, bool binary) = 0;
  virtual Task<void> close(std::uint16_t code, std::string reason) = 0;
};
/// The routes of the API, many at once, as JSON messages.
Task<void> serve_multiplex(App& app, WebSocketPeer& peer);
/// A terminal: binary messages are its input and output, text messages are control.
Task<void> serve_terminal(App& app, WebSocketPeer& peer, const std::map<std::string, std::string>& query);

}  // namespace sandboxd::agent
