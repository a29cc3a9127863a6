// Random interleavings of commands, effects, crashes, and late or repeated reports, against what must always
// hold. A failure prints its seed; SEED=<n> plays that one again. FULL=1 takes a million steps.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "lifecycle_json.hpp"
#include "lifecycle_world.hpp"
#include "sandboxes/events.hpp"
#include "sandboxes/projection.hpp"

namespace {

using namespace sandboxes;
using namespace sandboxes::bindings;

constexpr std::int64_t kEpisodeSteps = 250;

std::int64_t steps_to_take() {
  const char* full = std::getenv("FULL");
  return full != nullptr && std::string(full) == "1" ? 1'000'000 : 100'000;
}

/// The projection, folded from the model's stream, says what the model's own reading says.
void check_projection(const std::vector<lifecycle::Event>& stream) {
  Json events = Json::array();
  bool running = false;
  for (const auto& event : stream) {
    events.push_back({{"offset", events.size() + 1},
                      {"type", std::string(kEventTypePrefix) + event.name},
                      {"payload", payload_json(event.payload)}});
    if (event.name == "started") running = true;
    if (event.name == "stopped" || event.name == "destroyed") running = false;
  }
  const std::string text = events.dump();
  simdjson::dom::parser parser;
  simdjson::dom::array array;
  REQUIRE(parser.parse(text).get(array) == simdjson::SUCCESS);
  ProjectionState state;
  REQUIRE(fold(state, array).has_value());
  CHECK(state.running == running);
  for (const auto event : array) {
    std::string_view type;
    simdjson::dom::element payload;
    REQUIRE(event["type"].get(type) == simdjson::SUCCESS);
    REQUIRE(event["payload"].get(payload) == simdjson::SUCCESS);
    INFO(type);
    CHECK(validate_event(type, payload, 1000).has_value());
  }
}

/// The state as it is stored is the state.
void check_codec(const lifecycle::State& state) {
  const std::string text = state_json(state).dump();
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  REQUIRE(parser.parse(text).get(element) == simdjson::SUCCESS);
  const auto read = read_state(element);
  REQUIRE(read.has_value());
  CHECK(*read == state);
}

void play(std::uint64_t seed) {
  model::World world(seed);
  for (std::int64_t step = 0; step < kEpisodeSteps; ++step) {
    world.step();
    if (world.broken().empty()) continue;
    INFO("seed " << seed << ", step " << step << ": " << world.broken());
    REQUIRE(world.broken().empty());
  }
  INFO("seed " << seed);
  check_projection(world.stream());
  check_codec(world.state());
}

}  // namespace

TEST_CASE("whatever happens in whatever order, the lifecycle keeps its promises") {
  if (const char* seed = std::getenv("SEED")) return play(std::stoull(seed));
  const std::int64_t episodes = steps_to_take() / kEpisodeSteps;
  for (std::int64_t episode = 0; episode < episodes; ++episode) play(static_cast<std::uint64_t>(episode) + 1);
}
