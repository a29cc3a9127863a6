#include <array>

#include "codec.hpp"
#include "request_json.hpp"
#include "sandboxes/openai.hpp"

namespace sandboxes::bindings {

namespace {

Result<Output> rewrite(const CallInput& input) {
  const auto request = read_request(input.json, input.body_text());
  if (!request) return propagate(request);
  const auto gateway = read_gateway(input.json);
  if (!gateway) return propagate(gateway);
  if (!*gateway) return tl::unexpected(wrong_type("gateway", find(input.json, "gateway"), "an object"));
  auto routed = rewrite_openai_request(*request, **gateway);
  if (!routed) return propagate(routed);
  Json json = Json::object();
  if (const auto* not_routed = std::get_if<NotRouted>(&*routed)) {
    json["notRouted"] = not_routed->reason;
    return Output{std::move(json)};
  }
  auto& call = std::get<GatewayCall>(*routed);
  json["endpoint"] = std::move(call.endpoint);
  json["headers"] = headers_json(call.headers);
  if (call.cache_key_input) json["cacheKeyInput"] = std::move(*call.cache_key_input);
  return Output{std::move(json), std::move(call.body)};
}

constexpr std::array kOpenaiFunctions{FunctionEntry{"rewriteOpenAiRequest", rewrite}};

}  // namespace

std::span<const FunctionEntry> openai_functions() {
  return kOpenaiFunctions;
}

}  // namespace sandboxes::bindings
