// A policy and a request: a deny-all policy never lets anything out, and every decision is one of the four.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::json;
  const auto lines = fuzz::parts(fuzz::text(data, size), 3);
  const std::string request = std::string(lines[1]);
  const std::string given = "{\"policy\":" + std::string(lines[0]) + ",\"request\":" + request + "}";
  const Json answer = fuzz::call("decideEgressOnce", given, lines[2]);
  if (answer.contains("value")) {
    const std::string kind = answer["value"]["kind"].get<std::string>();
    fuzz::require(kind == "deny" || kind == "forward" || kind == "secret" || kind == "aiGateway",
                  "a known decision");
    if (kind == "deny") fuzz::require(answer["value"]["status"].get<int>() >= 400, "a deny has a status");
  }
  const std::string closed = "{\"policy\":{\"default\":\"deny\",\"rules\":[]},\"request\":" + request + "}";
  const Json refused = fuzz::call("decideEgressOnce", closed, lines[2]);
  if (refused.contains("value"))
    fuzz::require(refused["value"]["kind"] == "deny", "a closed door lets nothing out");
  return 0;
}
