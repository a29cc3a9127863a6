#include "boundary.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>

using namespace sandboxes::bindings;
using Json = nlohmann::json;

namespace {

std::string code_of(std::string_view answer) {
  return Json::parse(answer)["error"]["code"].get<std::string>();
}

Json value_of(std::string_view answer) {
  const Json json = Json::parse(answer);
  INFO(answer);
  REQUIRE(json.contains("value"));
  return json["value"];
}

std::size_t index_of(std::string_view name) {
  const auto functions = all_functions();
  std::size_t index = 0;
  while (index < functions.size() && functions[index].name != name) ++index;
  return index;
}

/// Calls with bare texts; nothing when JSON is wanted instead.
std::optional<std::string> call_fields(Boundary& boundary, std::string_view name, double handle,
                                       std::string_view text, std::size_t count, std::string_view body) {
  std::uint8_t* place = boundary.reserve(text.size() + body.size());
  REQUIRE(place != nullptr);
  std::memcpy(place, text.data(), text.size());
  std::memcpy(place + text.size(), body.data(), body.size());
  const FieldsLayout layout{handle, count, text.size(), text.size() + body.size(), true};
  if (!boundary.call_fields(index_of(name), layout)) return std::nullopt;
  return std::string(boundary.answer());
}

}  // namespace

TEST_CASE("bare texts are read where they are as many as was said") {
  using namespace std::string_view_literals;
  Boundary boundary;
  const auto request = "https://a.example/\0x\0getSecret(\"/secrets/a\")"sv;
  CHECK(call_fields(boundary, "scanPlaceholders", 0, request, 3, "") == "s/secrets/a\0\0"sv);
  CHECK_FALSE(call_fields(boundary, "scanPlaceholders", 0, request, 2, ""));
  CHECK_FALSE(call_fields(boundary, "scanPlaceholders", 0, request, 4, ""));
  CHECK_FALSE(call_fields(boundary, "scanPlaceholders", 0, "", 0, ""));
  CHECK_FALSE(call_fields(boundary, "durableObjectName", 0, request, 3, ""));
  CHECK_FALSE(boundary.call_fields(1000, {}));
  CHECK_FALSE(boundary.call_fields(index_of("scanPlaceholders"), {0, 1, 1 << 20, 1 << 20, false}));
  CHECK(code_of(*call_fields(boundary, "scanPlaceholders", 0, "x", 1, "")) == "invalid_url");
}

TEST_CASE("a fold of bytes answers with texts, and with JSON where those cannot hold the state") {
  using namespace std::string_view_literals;
  Boundary boundary;
  const std::string_view first = R"([{"offset":1,"type":"events.iterate.com/sandbox/started"}])";
  CHECK(call_fields(boundary, "foldProjection", 0, "", 0, first) == "\0running\0\0\0\0001\0"sv);
  const std::string_view second = R"([{"offset":2,"type":"events.iterate.com/sandbox/started"}])";
  CHECK(value_of(*call_fields(boundary, "foldProjection", 0, "", 0, second))["missing"][0][0] == 1);
  CHECK_FALSE(call_fields(boundary, "foldProjection", 0, "", 0, "[1]"));
  const auto handle = value_of(boundary.call("createProjection", "{}")).get<double>();
  CHECK(value_of(*call_fields(boundary, "projectionApply", handle, "", 0, first)) == 1);
  CHECK_FALSE(call_fields(boundary, "projectionApply", handle + 1, "", 0, first));
}

TEST_CASE("a first call of nothing finds a place too") {
  Boundary boundary;
  CHECK(boundary.reserve(0) != nullptr);
}

TEST_CASE("functions have names of their own") {
  std::set<std::string_view> names;
  for (const FunctionEntry& entry : all_functions()) {
    INFO(entry.name);
    CHECK(names.insert(entry.name).second);
  }
}

TEST_CASE("lengths that lie are refused, and nothing beyond the buffer is read") {
  Boundary boundary;
  boundary.call(0, 0, false);
  CHECK(code_of(boundary.answer()) == "invalid_json");
  std::uint8_t* place = boundary.reserve(100);
  REQUIRE(place != nullptr);
  const std::uint32_t length = 4000;
  std::memcpy(place, &length, sizeof length);
  boundary.call(0, 100, false);
  CHECK(code_of(boundary.answer()) == "invalid_json");
  boundary.call(0, 1'000'000, false);
  CHECK(code_of(boundary.answer()) == "invalid_json");
  boundary.call(99'999, 100, false);
  CHECK(code_of(boundary.answer()) == "unknown_function");
}

TEST_CASE("more than 32 MiB finds no place") {
  Boundary boundary;
  CHECK(boundary.reserve(32 * 1024 * 1024 + 5) == nullptr);
  const std::string large(32 * 1024 * 1024 + 1, ' ');
  CHECK(code_of(boundary.call("limits", large)) == "input_too_large");
  CHECK(value_of(boundary.call("limits", "{}"))["nesting"] == 64);
}

TEST_CASE("a large call leaves a boundary that works") {
  Boundary boundary;
  std::string events = "[";
  for (int i = 1; i <= 40'000; ++i) {
    events += (i > 1 ? "," : "") + std::string(R"({"offset":)") + std::to_string(i) +
              R"(,"type":"events.iterate.com/sandbox/started","payload":{}})";
  }
  events += "]";
  CHECK(value_of(boundary.call("foldProjection", "{}", events))["offset"] == 40'000);
  CHECK(value_of(boundary.call("foldProjection", "{}", "[]"))["offset"] == 0);
}

TEST_CASE("a handle names one life of a slot") {
  Boundary boundary;
  const auto handle = value_of(boundary.call("createProjection", "{}")).get<std::int64_t>();
  const std::string arguments = Json{{"handle", handle}}.dump();
  const std::string event = R"([{"offset":1,"type":"events.iterate.com/sandbox/started","payload":{}}])";
  CHECK(value_of(boundary.call("projectionApply", arguments, event)) == 1);
  CHECK(value_of(boundary.call("projectionState", arguments))["running"] == true);
  CHECK(value_of(boundary.call("projectionFree", arguments)) == true);
  CHECK(value_of(boundary.call("projectionFree", arguments)) == false);
  const auto next = value_of(boundary.call("createProjection", "{}")).get<std::int64_t>();
  CHECK(next != handle);
  CHECK(code_of(boundary.call("projectionState", arguments)) == "unknown_handle");
  CHECK(boundary.session().projections.count() == 1);
}

TEST_CASE("a batch that is refused changes nothing") {
  Boundary boundary;
  const auto handle = value_of(boundary.call("createProjection", "{}")).get<std::int64_t>();
  const std::string arguments = Json{{"handle", handle}}.dump();
  const std::string half =
      R"([{"offset":1,"type":"events.iterate.com/sandbox/started","payload":{}},{"offset":"2"}])";
  CHECK(code_of(boundary.call("projectionApply", arguments, half)) == "invalid_event");
  CHECK(value_of(boundary.call("projectionState", arguments))["offset"] == 0);
}

TEST_CASE("what is printed is what nlohmann prints") {
  std::string every;
  for (int byte = 1; byte < 128; ++byte) every += static_cast<char>(byte);
  every += "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80";
  const Json json{
      {"text", every},
      {"numbers", Json::array({0, -1, 1.5, 1e300, 5e-324, 9007199254740993ULL, -9007199254740993LL, 0.1})},
      {"other", Json::array({nullptr, true, false, Json::object(), Json::array()})}};
  CHECK(print(json) == json.dump());
  CHECK(print(json, true) == json.dump(-1, ' ', true));
  CHECK(print(Json("a\xFF")) == "\"a\xEF\xBF\xBD\"");
}
