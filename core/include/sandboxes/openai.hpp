#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sandboxes/http.hpp"
#include "sandboxes/result.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

/// The project's AI Gateway as the shell gives it.
struct Gateway {
  std::string api_key;
  std::optional<std::int64_t> cache_ttl_seconds;
  std::string metadata;  ///< JSON text for `cf-aig-metadata`, ASCII
};

/// A call of `gateway.run` with the platform's key.
struct GatewayCall {
  std::string endpoint;
  OwnedHeaders headers;
  std::optional<std::string> body;  ///< nothing when it is the request's own
  /// The bytes whose SHA-256 is the cache key, when there is a cache.
  std::optional<std::string> cache_key_input;
};

/// Why a request takes normal egress: `not_openai`, `websocket`, `method`, `path`, `content_type`,
/// `placeholder`, `body` or `no_api_key`.
struct NotRouted {
  std::string_view reason;
};

/// Turns a JSON call of api.openai.com into a gateway call, or says why it is none. The request must hold no
/// placeholder; whoever has scanned it says so. The URL decides, so give it as it would be fetched.
[[nodiscard]] std::variant<NotRouted, GatewayCall> route_openai(const RequestView& request, const Url& url,
                                                                bool web_socket, const Gateway& gateway);

/// The same, with the scan.
[[nodiscard]] Result<std::variant<NotRouted, GatewayCall>> rewrite_openai_request(const RequestView& request,
                                                                                  const Gateway& gateway);

/// Whether the header asks for an upgrade to WebSocket.
[[nodiscard]] bool asks_for_web_socket(const HeaderList& headers);

}  // namespace sandboxes
