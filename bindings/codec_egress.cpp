#include <array>

#include "codec.hpp"
#include "policy_json.hpp"
#include "request_json.hpp"
#include "sandboxes/address.hpp"
#include "sandboxes/egress.hpp"
#include "sandboxes/redirect.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

namespace {

Output decision_output(EgressDecision decision) {
  ObjectText text;
  text.string("kind", kind_name(decision.kind));
  text.optional_string("rule", decision.rule);
  text.raw("references", references_text(decision.references));
  text.raw("dropHeaders", print(Json(decision.drop_headers)));
  if (decision.kind == EgressKind::deny) {
    text.raw("status", std::to_string(decision.status));
    text.string("code", decision.code);
    text.string("detail", decision.detail);
    text.string("body", deny_body(decision.code, decision.rule, decision.detail));
  }
  if (!decision.call) return text_output(text.take());
  text.string("endpoint", decision.call->endpoint);
  text.raw("headers", print(headers_json(decision.call->headers)));
  if (decision.call->cache_key_input) text.string("cacheKeyInput", *decision.call->cache_key_input);
  Output output = text_output(text.take());
  output.body = std::move(decision.call->body);
  return output;
}

/// `gateway` and `connection` of a request; the gateway is kept in `gateway`, which must outlive the request.
Result<void> read_surroundings(Input given, EgressRequest& request, std::optional<Gateway>& gateway) {
  auto read = read_gateway(given);
  if (!read) return propagate(read);
  gateway = std::move(*read);
  if (gateway) request.gateway = &*gateway;
  const auto connection = read_optional_object(given, "connection");
  if (!connection) return propagate(connection);
  if (!*connection) return {};
  const auto sni = read_optional_string(**connection, "sni");
  if (!sni) return propagate(sni);
  const auto address = read_optional_string(**connection, "address");
  if (!address) return propagate(address);
  request.sni = *sni;
  request.address = *address;
  return {};
}

Result<Output> decide(const EgressPolicy& policy, const CallInput& input) {
  const auto given = read_object(input.json, "request");
  if (!given) return propagate(given);
  EgressRequest request;
  auto view = read_request(*given, input.body_text());
  if (!view) return propagate(view);
  request.request = std::move(*view);
  const auto web_socket = read_optional_bool(*given, "webSocket");
  if (!web_socket) return propagate(web_socket);
  request.web_socket = web_socket->value_or(false);
  std::optional<Gateway> gateway;
  if (auto read = read_surroundings(*given, request, gateway); !read) return propagate(read);
  return decision_output(decide_egress(policy, request));
}

/// Method, URL, `1` for a WebSocket, JSON of `{ gateway, connection }` or nothing, then names and values of
/// the headers.
bool decide_fields(const FieldsInput& input, Answer& answer) {
  constexpr std::size_t kFirstHeader = 4;
  const auto policy = input.session.policies.get(static_cast<std::int64_t>(input.handle));
  auto headers = read_header_fields(input.fields, kFirstHeader);
  if (!policy || !headers) return false;
  EgressRequest request;
  request.request = {input.fields[0], input.fields[1], std::move(*headers), input.body};
  request.web_socket = input.fields[2] == "1";
  std::optional<Gateway> gateway;
  if (!input.fields[3].empty()) {
    const auto given = parse_padded(input.parser, input.fields[3], "input");
    if (!given || !read_surroundings(*given, request, gateway)) return false;
  }
  answer.set(decision_output(decide_egress(**policy, request)));
  return true;
}

Result<Output> compile(const CallInput& input) {
  auto policy = read_policy(input.json, "policy");
  if (!policy) return propagate(policy);
  return Output{Json(input.session.policies.add(std::move(*policy)))};
}

Result<Output> decide_by_handle(const CallInput& input) {
  const auto handle = read_int(input.json, "handle");
  if (!handle) return propagate(handle);
  const auto policy = input.session.policies.get(*handle);
  if (!policy) return propagate(policy);
  return decide(**policy, input);
}

Result<Output> free_policy(const CallInput& input) {
  const auto handle = read_int(input.json, "handle");
  if (!handle) return propagate(handle);
  return Output{Json(input.session.policies.free(*handle))};
}

/// For a policy that is asked once.
Result<Output> decide_once(const CallInput& input) {
  const auto policy = read_policy(input.json, "policy");
  if (!policy) return propagate(policy);
  return decide(*policy, input);
}

Result<Output> classify_text(const CallInput& input) {
  const auto text = read_string(input.json, "ip");
  if (!text) return propagate(text);
  const auto address = parse_address(*text);
  if (!address) return propagate(address);
  return Output{Json(class_name(classify(*address)))};
}

Result<Output> deny_response(const CallInput& input) {
  const auto decision = read_object(input.json, "decision");
  if (!decision) return propagate(decision);
  const auto kind = read_optional_string(*decision, "kind");
  if (!kind) return propagate(kind);
  if (*kind && **kind != "deny")
    return tl::unexpected(wrong_type("kind", find(*decision, "kind"), "\"deny\""));
  const auto status = read_optional_int(*decision, "status");
  if (!status) return propagate(status);
  const auto code = read_optional_string(*decision, "code");
  if (!code) return propagate(code);
  const auto rule = read_optional_string(*decision, "rule");
  if (!rule) return propagate(rule);
  const auto detail = read_optional_string(*decision, "detail");
  if (!detail) return propagate(detail);
  std::optional<std::string> rule_id;
  if (*rule) rule_id = std::string(**rule);
  Json json = Json::object();
  json["status"] = status->value_or(403);
  json["headers"] = headers_json({{"content-type", "application/json"}, {"cache-control", "no-store"}});
  json["body"] =
      deny_body(code->value_or("egress_denied"), rule_id, detail->value_or("denied by project policy"));
  return Output{std::move(json)};
}

Result<Output> next(const CallInput& input) {
  const auto given = read_object(input.json, "request");
  if (!given) return propagate(given);
  const auto request = read_request(*given, {});
  if (!request) return propagate(request);
  const auto answer = read_object(input.json, "response");
  if (!answer) return propagate(answer);
  RedirectResponse response;
  const auto status = read_int(*answer, "status");
  if (!status) return propagate(status);
  response.status = *status;
  const auto location = read_optional_string(*answer, "location");
  if (!location) return propagate(location);
  const auto headers = read_headers(*answer);
  if (!headers) return propagate(headers);
  response.location = *location ? *location : find_header(*headers, "location");
  const auto origins = read_optional_strings(input.json, "origins");
  if (!origins) return propagate(origins);
  auto hop = next_hop(*request, response, *origins);
  if (!hop) return propagate(hop);
  Json json = Json::object();
  json["method"] = std::move(hop->method);
  json["url"] = std::move(hop->url);
  json["headers"] = headers_json(hop->headers);
  json["keepsBody"] = hop->keeps_body;
  return Output{std::move(json)};
}

Result<Output> handshake_headers(const CallInput& input) {
  const auto request = read_object(input.json, "request");
  if (!request) return propagate(request);
  const auto response = read_object(input.json, "response");
  if (!response) return propagate(response);
  const auto offered = read_headers(*request);
  if (!offered) return propagate(offered);
  const auto answered = read_headers(*response);
  if (!answered) return propagate(answered);
  return Output{headers_json(web_socket_response_headers(*offered, *answered))};
}

constexpr std::array kEgressFunctions{
    FunctionEntry{"compileEgressPolicy", compile},
    FunctionEntry{"decideEgress", decide_by_handle, decide_fields},
    FunctionEntry{"freeEgressPolicy", free_policy},
    FunctionEntry{"decideEgressOnce", decide_once},
    FunctionEntry{"classifyAddress", classify_text},
    FunctionEntry{"denyResponse", deny_response},
    FunctionEntry{"nextHop", next},
    FunctionEntry{"webSocketResponseHeaders", handshake_headers},
};

}  // namespace

std::span<const FunctionEntry> egress_functions() {
  return kEgressFunctions;
}

}  // namespace sandboxes::bindings
