#include "sandboxes/redirect.hpp"

#include <algorithm>
#include <array>

#include "policy_schemes.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/strings.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

namespace {

constexpr std::array<std::string_view, 6> kBodyHeaders = {"content-encoding", "content-language",
                                                          "content-length",   "content-location",
                                                          "content-type",     "transfer-encoding"};
constexpr std::array<std::string_view, 4> kCredentialHeaders = {"authorization", "cookie", "cookie2",
                                                                "proxy-authorization"};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool same_origin(const Url& left, const Url& right) {
  return left.secure() == right.secure() && left.port == right.port && left.host == right.host;
}

bool becomes_get(std::int64_t status, std::string_view method) {
  if (status == 303) return method != "GET" && method != "HEAD";
  return (status == 301 || status == 302) && method == "POST";
}

}  // namespace

Result<NextRequest> next_hop(const RequestView& request, const RedirectResponse& response,
                             const std::optional<std::vector<std::string_view>>& origins) {
  constexpr std::array<std::int64_t, 5> kStatuses = {301, 302, 303, 307, 308};
  if (std::find(kStatuses.begin(), kStatuses.end(), response.status) == kStatuses.end()) {
    return fail(NotARedirect{response.status, "only 301, 302, 303, 307 and 308 are redirects"});
  }
  if (!response.location || response.location->empty()) {
    return fail(NotARedirect{response.status, "it has no Location"});
  }
  const auto from = parse_url(request.url);
  if (!from) return propagate(from);
  auto target = resolve_location(request.url, *response.location);
  if (!target) return propagate(target);
  const auto to = parse_url(*target);
  if (!to) return propagate(to);
  // A server never sees a placeholder, so one in its answer is not the client's.
  if (mentions_placeholder(percent_decode(*target))) {
    return fail(RedirectRefused{origin_text(*to), "its Location holds a placeholder"});
  }
  if (origins) {
    if (to->has_userinfo)
      return fail(RedirectRefused{origin_text(*to), "its Location holds user information"});
    if (auto pinned = check_secret_pin(*origins, *target); !pinned) return propagate(pinned);
  }
  NextRequest next;
  next.method = internal::to_upper_ascii(request.method);
  next.url = std::move(*target);
  next.keeps_body = !becomes_get(response.status, next.method);
  if (!next.keeps_body) next.method = "GET";
  if (to->fragment == Range{to->fragment.end, to->fragment.end} &&
      from->fragment.begin < from->fragment.end) {
    next.url += "#" + std::string(from->fragment.of(request.url));
  }
  const bool keeps_credentials = same_origin(*from, *to);
  for (const auto& [name, value] : request.headers) {
    const std::string lower = to_lower_ascii(name);
    const bool dropped = (!next.keeps_body && contains(kBodyHeaders, lower)) ||
                         (!keeps_credentials && (contains(kCredentialHeaders, lower) || lower == "host"));
    if (!dropped) next.headers.emplace_back(std::string(name), std::string(value));
  }
  return next;
}

Result<void> check_secret_pin(const std::vector<std::string_view>& origins, std::string_view url) {
  const auto target = parse_url(url);
  if (!target) return propagate(target);
  std::string allowed;
  for (const auto origin : origins) {
    const auto pin = parse_url(origin);
    if (!pin) return propagate(pin);
    if (same_origin(*pin, *target)) return {};
    allowed += (allowed.empty() ? "" : ", ") + origin_text(*pin);
  }
  return fail(SecretNotAllowedForOrigin{origin_text(*target), allowed});
}

OwnedHeaders web_socket_response_headers(const HeaderList& request, const HeaderList& response) {
  constexpr std::string_view kProtocol = "sec-websocket-protocol";
  std::vector<std::string_view> offered;
  for (const auto& [name, value] : request) {
    if (!equals_ignoring_case(name, kProtocol)) continue;
    for (const auto part : split_list(value)) offered.push_back(part);
  }
  OwnedHeaders headers;
  const bool one_protocol = count_headers(response, kProtocol) == 1;
  for (const auto& [name, value] : response) {
    std::string lower = to_lower_ascii(name);
    const bool handshake =
        lower.starts_with("sec-websocket-") || is_hop_by_hop(lower) || lower == "content-length";
    const bool selected =
        lower == kProtocol && one_protocol && is_token(trim(value)) && contains(offered, trim(value));
    if (selected) {
      headers.emplace_back(std::move(lower), std::string(trim(value)));
    } else if (!handshake) {
      headers.emplace_back(std::move(lower), std::string(value));
    }
  }
  return headers;
}

}  // namespace sandboxes
