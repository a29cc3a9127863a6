#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::agent {

/// A message of the WebSocket transport. `body` is the raw JSON text inside the message, empty when there is
/// none.
struct TransportMessage {
  std::string type;
  std::string id;
  std::string method;
  std::string path;
  std::string_view body;
};

/// Takes the envelope apart without reading the body, which may be megabytes.
std::optional<TransportMessage> split_message(std::string_view text);

/// The port of a control connection's first line, `PORT <n>` without its line feed.
std::optional<std::uint16_t> parse_port_line(std::string_view line);

}  // namespace sandboxd::agent
