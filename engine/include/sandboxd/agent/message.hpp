#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::agent {

/// A message of the WebSocket transport. `body` is the raw JSON text inside the message, empty when there is none.
struct TransportMessage {
  std::string type;
  std::string id;
  std::string method;
  std::string path;
  std::string_view body;
};

/// Takes the envelope apart without reading the body, which may be megabytes.
std::optional<TransportMessage> split_message(std::string_view text);

}  // namespace sandboxd::agent
