#include "lifecycle_driver.hpp"

/// How a sandbox comes to be, who it is, and how it ends.
using namespace lifecycle_driver;

TEST_CASE("what was never created refuses everything and changes nothing") {
  Driver driver;
  for (const Request& request :
       {Request{AssertCreated{}}, Request{Start{}}, Request{Sleep{}}, Request{Restart{}}, Request{Kill{}},
        Request{Destroy{}}, Request{SetKeepAlive{true}}, Request{SetSleepAfter{5.0}}, Request{SetEnvVars{}},
        Request{Admit{"exec"}}}) {
    CHECK(code(driver.ask(request)) == "sandbox_not_found");
    CHECK(driver.state == initial_state());
  }
}

TEST_CASE("create appends created, then configured, and is done when both are on the stream") {
  Driver driver;
  REQUIRE(driver.ask(Create{{"basic", std::string("10m"), true, EnvMap{{"A", "1"}}}}).has_value());
  REQUIRE(driver.events.size() == 2);
  CHECK(driver.events[0].name == "created");
  CHECK(driver.events[1].name == "configured");
  CHECK_FALSE(driver.proceeds());
  CHECK(code(driver.ask(Create{{"basic", std::string("10m"), true, EnvMap{{"A", "1"}}}})) ==
        "creation_in_progress");
  CHECK(code(driver.ask(Start{})) == "creation_unfinished");
  driver.append_all();
  REQUIRE(driver.ask(Create{{"basic", std::string("10m"), true, EnvMap{{"A", "1"}}}}, 0).has_value());
  CHECK(driver.proceeds());
  CHECK(driver.live().config.env == EnvMap{{"A", "1"}});
  CHECK(driver.live().config.keep_alive);
  CHECK(code(driver.ask(Create{{"basic", {}, {}, {}}})) == "sandbox_exists");
  // Another type would not have made it either.
  CHECK(code(driver.ask(Create{{"lite", {}, {}, {}}})) == "sandbox_exists");
}

TEST_CASE("an unfinished creation is resumed by the same input only, and keeps its first time") {
  Driver driver;
  REQUIRE(driver.ask(Create{{"basic", {}, true, {}}}).has_value());
  driver.context.now = 9'000;
  driver.tell(ObjectLoaded{});
  CHECK(driver.events.empty());
  CHECK(code(driver.ask(Create{{"basic", {}, {}, {}}})) == "creation_unfinished");
  CHECK(code(driver.ask(Create{{"lite", {}, true, {}}})) == "instance_type_mismatch");
  REQUIRE(driver.ask(Create{{"basic", {}, true, {}}}).has_value());
  CHECK(driver.emitted("created"));
  driver.append_all();
  CHECK(driver.live().record.created_at == 1'000);
}

TEST_CASE("create is for this class's type, a sandbox path, and env without raw secrets") {
  Driver driver;
  CHECK(code(driver.ask(Create{{"lite", {}, {}, {}}})) == "instance_type_mismatch");
  CHECK(code(driver.ask(
            Create{{"basic", {}, {}, EnvMap{{"K", "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}})) ==
        "raw_secret_refused");
  CHECK(driver.state == initial_state());
  const Command elsewhere{Create{{"basic", {}, {}, {}}}, Identity{"prj_1", "/sandboxes/a/b"}, std::nullopt};
  CHECK_FALSE(decide(driver.state, elsewhere, driver.context).has_value());
}

TEST_CASE("another identity is refused") {
  Driver driver;
  driver.create();
  for (const Identity& other : {Identity{"prj_2", "/sandboxes/a"}, Identity{"prj_1", "/sandboxes/A"}}) {
    for (const Request& request : {Request{Start{}}, Request{Destroy{}}, Request{AssertCreated{}}}) {
      const auto refused = decide(driver.state, {request, other, std::nullopt}, driver.context);
      REQUIRE_FALSE(refused.has_value());
      CHECK(describe(refused.error()).code == "identity_mismatch");
    }
  }
}

TEST_CASE("destroy tears down first, then says stopped and destroyed, and retires the name") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Destroy{}).has_value());
  CHECK(driver.emitted("destroy-requested"));
  CHECK_FALSE(driver.emitted("destroyed"));
  REQUIRE(driver.effect<TearDown>() != nullptr);
  CHECK(driver.effect<TakeSnapshot>() == nullptr);
  driver.tell(EffectFailed{1, "tearDown", "stuck", false});
  CHECK(code(driver.ask(Destroy{}, 1)) == "tear_down_failed");
  CHECK(code(driver.ask(Start{})) == "sandbox_destroyed");
  REQUIRE(driver.ask(Destroy{}).has_value());
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  REQUIRE(driver.events.size() == 2);
  CHECK(driver.events[0].name == "stopped");
  CHECK(driver.events[1].name == "destroyed");
  driver.append_all();
  REQUIRE(driver.ask(Destroy{}, 1).has_value());
  CHECK(driver.proceeds());
  REQUIRE(driver.ask(Destroy{}).has_value());
  CHECK(driver.proceeds());
  CHECK(driver.events.empty());
  CHECK(code(driver.ask(Create{{"basic", {}, {}, {}}})) == "sandbox_destroyed");
  CHECK(code(driver.ask(Admit{"exec"})) == "sandbox_destroyed");
}

TEST_CASE("fenced methods name what to use") {
  Driver driver;
  driver.create();
  CHECK(code(driver.ask(Admit{"mountBucket"})) == "method_fenced");
  CHECK(code(driver.ask(Admit{"exposePort"})) == "method_fenced");
  for (const Fence& fence : fences()) CHECK_FALSE(fence.advice.empty());
}

TEST_CASE("evolve knows what stored events mean") {
  Driver driver;
  driver.create();
  State state = evolve(driver.state, "configured", ConfiguredPayload{EnvChanges{{"A", "1"}}, {}, true});
  CHECK(std::get<Live>(state.life).config.env == EnvMap{{"A", "1"}});
  state = evolve(std::move(state), "started", NoPayload{});
  CHECK(std::holds_alternative<Fresh>(std::get<Live>(state.life).container));
  state = evolve(std::move(state), "stopped", NoPayload{});
  CHECK(std::holds_alternative<Down>(std::get<Live>(state.life).container));
  CHECK(evolve(state, "something-else", NoPayload{}) == state);
  state = evolve(std::move(state), "destroyed", NoPayload{});
  CHECK(std::holds_alternative<Destroyed>(state.life));
  CHECK(evolve(state, "created", NoPayload{}) == state);
}
