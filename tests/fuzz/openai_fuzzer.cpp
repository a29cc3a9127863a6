// A body for OpenAI: what is routed is a JSON object before and after, and only stream_options may be new in
// it.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::json;
  const auto lines = fuzz::parts(fuzz::text(data, size), 2);
  const Json request{
      {"method", "POST"},
      {"url", "https://api.openai.com/v1/" + std::string(lines[0])},
      {"headers", Json::array({Json::array({"content-type", "application/json"})})},
      {"gateway", Json{{"apiKey", "key"}, {"cacheTtlSeconds", 60}, {"metadata", Json::object()}}}};
  static sandboxes::bindings::Boundary boundary;
  const Json answer = Json::parse(boundary.call(
      "rewriteOpenAiRequest", request.dump(-1, ' ', false, Json::error_handler_t::replace), lines[1]));
  if (!answer.contains("value") || answer["value"].contains("notRouted")) return 0;
  // Without an answer of its own the body stays as it is.
  const std::string_view routed = boundary.answer_body() ? *boundary.answer_body() : lines[1];
  Json before = Json::parse(lines[1], nullptr, false);
  Json after = Json::parse(routed, nullptr, false);
  fuzz::require(after.is_object(), "a routed body is a JSON object");
  // A number that no double holds parses in the core and not here.
  if (!before.is_object()) return 0;
  before.erase("stream_options");
  after.erase("stream_options");
  fuzz::require(before == after, "nothing but stream_options changes");
  return 0;
}
