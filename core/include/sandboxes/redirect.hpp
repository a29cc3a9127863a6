#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/http.hpp"
#include "sandboxes/result.hpp"

namespace sandboxes {

/// A response that redirects.
struct RedirectResponse {
  std::int64_t status = 0;
  std::optional<std::string_view> location;
};

/// The request after one redirect.
struct NextRequest {
  std::string method;
  std::string url;
  OwnedHeaders headers;
  bool keeps_body = false;
};

/// What follows a redirect, as the Fetch standard says it: method and body change with 301, 302 and 303,
/// credentials stay behind when the origin changes. With `origins` the request carried a secret that is
/// pinned to them, and every other hop is refused.
[[nodiscard]] Result<NextRequest> next_hop(const RequestView& request, const RedirectResponse& response,
                                           const std::optional<std::vector<std::string_view>>& origins);

/// Refuses a URL whose scheme, host and effective port are not those of one of the origins. wss counts as
/// https; what follows the origin in a pin plays no part; a trailing dot makes another host.
[[nodiscard]] Result<void> check_secret_pin(const std::vector<std::string_view>& origins,
                                            std::string_view url);

/// The headers of a WebSocket handshake's answer that go to the client: a subprotocol only when this client
/// offered it, so that no substituted secret comes back as one, and nothing that belongs to the other
/// connection.
[[nodiscard]] OwnedHeaders web_socket_response_headers(const HeaderList& request, const HeaderList& response);

}  // namespace sandboxes
