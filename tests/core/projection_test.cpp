#include "sandboxes/projection.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace sandboxes;

namespace {

std::string event(int offset, const std::string& name, const std::string& payload = "{}") {
  return R"({"offset":)" + std::to_string(offset) + R"(,"type":"events.iterate.com/sandbox/)" + name +
         R"(","payload":)" + payload + "}";
}

Result<void> fold_text(ProjectionState& state, const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::array events;
  REQUIRE(parser.parse(text).get_array().get(events) == simdjson::SUCCESS);
  return fold(state, events);
}

bool quickly(ProjectionState& state, const std::string& text) {
  const simdjson::padded_string padded(text);
  return fold_quickly(state, std::string_view(padded));
}

}  // namespace

TEST_CASE("the quick fold gives what the fold gives") {
  const std::string batches[] = {
      "[]",
      "[" + event(1, "created", R"({"config":{"instanceType":"basic"}})") + " , " + event(2, "started") + "]",
      "[" +
          event(1, "configured",
                R"({"env":{"A":"1","B":"\u00e4\n","A":"2"},"sleepAfter":"10m","keepAlive":true})") +
          "]",
      "[" + event(2, "backup-created", R"({"backupId":"b"})") + "," + event(7, "destroyed", "null") + "," +
          event(8, "started", "[[{\"a\":[1,2,{}]}]]") + "]",
      R"([{"payload":{"backupId":"b"},"extra":[{"x":"}"}],"type":"events.iterate.com/sandbox/backup-created","offset":1}])",
      R"([{"offset":1,"offset":3,"type":"x","type":"events.iterate.com/sandbox/started"}])",
  };
  for (const std::string& batch : batches) {
    INFO(batch);
    ProjectionState slow;
    ProjectionState quick;
    CHECK(fold_text(slow, batch).has_value());
    CHECK(quickly(quick, batch));
    CHECK(quick == slow);
    CHECK(quickly(quick, batch));
    CHECK(quick == slow);
  }
}

TEST_CASE("the quick fold leaves the unusual alone") {
  const std::string started = event(2, "started");
  const std::string deep(63, '[');
  const std::string texts[] = {
      "",
      "{}",
      "[1]",
      "[" + started,
      started,
      "[" + started + "] 1",
      "[" + started + ",]",
      "[" + started + "[]]",
      "[" + event(3, "started") + "," + started + "]",
      R"([{"offset":1.5,"type":"x"}])",
      R"([{"offset":01,"type":"x"}])",
      R"([{"offset":0,"type":"x"}])",
      R"([{"offset":1e3,"type":"x"}])",
      R"([{"offset":"1","type":"x"}])",
      R"([{"offset":9999999999999999,"type":"x"}])",
      R"([{"type":"x"}])",
      R"([{"off\u0073et":1,"type":"x"}])",
      R"([{"offset":1,"type":"\u0078"}])",
      R"([{"offset":1,"type":7}])",
      R"([{"offset":1,"payload":{]}])",
      R"([{"offset":1,"payload":{"a":[}}])",
      R"([{"offset":1,"payload":}])",
      R"([{"offset":1 2}])",
      R"([{"offset":1,"payload":"a)",
      "[" + event(2, "configured", R"({"env":{"A":"\ud800"}})") + "]",
      R"([{"offset":1,"payload":)" + deep + std::string(63, ']') + "}]",
      "[\"\xFF\"]",
  };
  for (const std::string& text : texts) {
    INFO(text);
    ProjectionState state;
    state.offset = 1;
    const ProjectionState before = state;
    CHECK_FALSE(quickly(state, text));
    CHECK(state == before);
  }
}

TEST_CASE("a batch with an event that was missed is out of order, quickly or not") {
  ProjectionState state;
  REQUIRE(fold_text(state, "[" + event(4, "started") + "]").has_value());
  REQUIRE(state.missing.size() == 1);
  const std::string late = "[" + event(2, "stopped") + "]";
  const auto refused = fold_text(state, late);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().get_if<OutOfOrder>() != nullptr);
  CHECK_FALSE(quickly(state, late));
}
