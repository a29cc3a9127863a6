#include "sandboxes/openai.hpp"

#include "json_text.hpp"
#include "policy_schemes.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using internal::JsonMember;
using Members = std::vector<JsonMember>;

constexpr std::string_view kHost = "api.openai.com";
constexpr std::string_view kPrefix = "/v1/";

bool is_json_type(std::string_view value) {
  return equals_ignoring_case(trim(value.substr(0, value.find(';'))), "application/json");
}

/// Path after `/v1/` and the query, as written. A path that a client would rewrite before sending is none.
std::optional<std::string> endpoint_of(std::string_view text, const Url& url) {
  const std::string_view path = url.path.of(text);
  if (!path.starts_with(kPrefix) || path.find('\\') != std::string_view::npos) return std::nullopt;
  std::string endpoint(path.substr(kPrefix.size()));
  if (endpoint.empty() || endpoint.front() == '/') return std::nullopt;
  const std::string decoded = percent_decode(endpoint);
  for (std::size_t begin = 0; begin <= decoded.size();) {
    const std::size_t end = std::min(decoded.find('/', begin), decoded.size());
    const std::string_view segment = std::string_view(decoded).substr(begin, end - begin);
    if (segment == "." || segment == "..") return std::nullopt;
    begin = end + 1;
  }
  if (url.has_query) endpoint += "?" + std::string(url.query.of(text));
  return endpoint;
}

/// JSON.parse keeps the last of equal keys.
const JsonMember* last_member(const Members& members, std::string_view key) {
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    if (member->key == key) return &*member;
  }
  return nullptr;
}

/// The Responses API always reports usage and refuses the option.
bool takes_include_usage(std::string_view endpoint) {
  const std::string_view resource = endpoint.substr(0, endpoint.find_first_of("/?"));
  return resource != "responses";
}

std::string insert(std::string_view body, std::size_t begin, std::size_t end, std::string_view text) {
  std::string out;
  out.reserve(body.size() + text.size());
  out += body.substr(0, begin);
  out += text;
  out += body.substr(end);
  return out;
}

/// Nothing when the body stays as it is. Else the body with `stream_options.include_usage: true` put in where
/// a streaming caller left it out. Nothing else moves.
std::optional<std::string> with_usage(std::string_view body, const Members& members) {
  constexpr std::string_view kUsage = "\"include_usage\":true";
  const JsonMember* stream = last_member(members, "stream");
  if (stream == nullptr || stream->value.of(body) != "true") return std::nullopt;
  const JsonMember* options = last_member(members, "stream_options");
  if (options == nullptr) {
    const std::size_t end = body.rfind('}');
    return insert(body, end, end, ",\"stream_options\":{" + std::string(kUsage) + "}");
  }
  const Range value = options->value;
  if (value.of(body) == "null") return insert(body, value.begin, value.end, "{" + std::string(kUsage) + "}");
  const auto inner = internal::read_members(body, value);
  if (!inner || last_member(*inner, "include_usage") != nullptr) return std::nullopt;
  const std::string text = std::string(kUsage) + (inner->empty() ? "" : ",");
  return insert(body, value.begin + 1, value.begin + 1, text);
}

OwnedHeaders gateway_headers(const HeaderList& callers, const Gateway& gateway) {
  OwnedHeaders headers = {
      {"authorization", "Bearer " + gateway.api_key}, {"content-type", "application/json"},
      {"cf-aig-metadata", gateway.metadata},          {"cf-aig-collect-log", "true"},
      {"cf-aig-collect-log-payload", "true"},
  };
  if (gateway.cache_ttl_seconds) {
    headers.emplace_back("cf-aig-cache-ttl", std::to_string(*gateway.cache_ttl_seconds));
  } else {
    headers.emplace_back("cf-aig-skip-cache", "true");
  }
  for (const auto& [name, value] : callers) {
    std::string lower = to_lower_ascii(name);
    if (lower == "accept" || lower.starts_with("openai-"))
      headers.emplace_back(std::move(lower), std::string(value));
  }
  return headers;
}

}  // namespace

bool asks_for_web_socket(const HeaderList& headers) {
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "upgrade")) continue;
    for (const auto part : split_list(value)) {
      if (equals_ignoring_case(part, "websocket")) return true;
    }
  }
  return false;
}

std::variant<NotRouted, GatewayCall> route_openai(const RequestView& request, const Url& url, bool web_socket,
                                                  const Gateway& gateway) {
  if (url.host.text != kHost || url.port != url.default_port()) return NotRouted{"not_openai"};
  if (web_socket || url.web_socket() || asks_for_web_socket(request.headers)) return NotRouted{"websocket"};
  const std::string method = internal::to_upper_ascii(request.method);
  if (method != "POST" && method != "PUT") return NotRouted{"method"};
  auto endpoint = endpoint_of(request.url, url);
  if (!endpoint) return NotRouted{"path"};
  const auto type = find_header(request.headers, "content-type");
  if (!type || !is_json_type(*type) || count_headers(request.headers, "content-type") > 1) {
    return NotRouted{"content_type"};
  }
  if (gateway.api_key.empty()) return NotRouted{"no_api_key"};
  const auto members = internal::read_members(request.body, {0, request.body.size()});
  if (!members) return NotRouted{"body"};
  GatewayCall call;
  if (takes_include_usage(*endpoint)) call.body = with_usage(request.body, *members);
  call.headers = gateway_headers(request.headers, gateway);
  // Equal bodies for two endpoints are two questions.
  if (gateway.cache_ttl_seconds)
    call.cache_key_input = *endpoint + "\n" + internal::canonical_json(call.body ? *call.body : request.body);
  call.endpoint = std::move(*endpoint);
  return call;
}

Result<std::variant<NotRouted, GatewayCall>> rewrite_openai_request(const RequestView& request,
                                                                    const Gateway& gateway) {
  const auto url = parse_url(request.url);
  if (!url) return propagate(url);
  auto routed = route_openai(request, *url, false, gateway);
  if (std::holds_alternative<NotRouted>(routed)) return routed;
  const auto scan = scan_placeholders(request);
  if (!scan || !scan->references.empty())
    return std::variant<NotRouted, GatewayCall>(NotRouted{"placeholder"});
  return routed;
}

}  // namespace sandboxes
