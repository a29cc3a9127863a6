#include "lifecycle_driver.hpp"

/// A container in its life: set-up, restart, kill, variables.
using namespace lifecycle_driver;

TEST_CASE("a container that ends by itself says why, one that was asked to does not") {
  for (const bool missed : {false, true}) {
    Driver driver;
    driver.create();
    driver.make_ready();
    driver.context.container_running = false;
    driver.context.container_end = "killed by signal 9";
    if (missed) {
      REQUIRE(driver.ask(Admit{"exec"}).has_value());
    } else {
      driver.tell(ContainerStopped{});
    }
    CHECK(driver.payload_of("stopped") == Payload{StoppedPayload{"killed by signal 9"}});
  }
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.context.container_end = "killed by signal 9";
  driver.tell(TornDown{1});
  CHECK(driver.payload_of("stopped") == Payload{NoPayload{}});
}

TEST_CASE("the first command boots, sets up in order, and is admitted then") {
  Driver driver;
  driver.create({"basic", {}, {}, EnvMap{{"A", "1"}}});
  REQUIRE(driver.ask(Admit{"exec"}).has_value());
  REQUIRE(driver.effect<Boot>() != nullptr);
  CHECK_FALSE(driver.emitted("start-requested"));
  driver.context.container_running = true;
  driver.tell(ContainerStarted{});
  CHECK(driver.emitted("started"));
  driver.tell(ContainerStarted{});
  CHECK(driver.events.empty());
  driver.append_all();
  driver.tell(BootDone{1});
  REQUIRE(driver.ask(Admit{"exec"}, 1).has_value());
  REQUIRE(driver.effect<ApplyEnv>() != nullptr);
  CHECK(driver.effect<ApplyEnv>()->env == EnvMap{{"A", "1"}});
  driver.tell(EnvApplied{1});
  REQUIRE(driver.effect<OpenSession>() != nullptr);
  driver.tell(SessionOpened{1});
  REQUIRE(driver.effect<ConfigureGit>() != nullptr);
  driver.tell(GitConfigured{1});
  REQUIRE(driver.ask(Admit{"exec"}, 1).has_value());
  CHECK(driver.proceeds());
  CHECK(driver.state.in_flight == 1);
  driver.tell(WorkFinished{});
  CHECK(driver.state.in_flight == 0);
}

TEST_CASE("an interrupted session set-up is tried again, with bounded patience") {
  Driver driver;
  driver.create();
  driver.boot();
  REQUIRE(driver.ask(Admit{"exec"}, 1).has_value());
  driver.tell(EnvApplied{1});
  std::int64_t last = -1;
  int tries = 0;
  for (; driver.effect<OpenSession>() != nullptr; ++tries) {
    CHECK(driver.effect<OpenSession>()->delay_ms > last);
    last = driver.effect<OpenSession>()->delay_ms;
    driver.tell(EffectFailed{1, "openSession", "gone", true});
  }
  CHECK(tries == 5);
  CHECK(code(driver.ask(Admit{"exec"}, 1)) == "set_up_failed");
}

TEST_CASE("restart is stopped and started, with a snapshot between") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Restart{}).has_value());
  CHECK(driver.emitted("restart-requested"));
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  CHECK(driver.emitted("stopped"));
  REQUIRE(driver.ask(Restart{}, 1).has_value());
  REQUIRE(driver.effect<Boot>() != nullptr);
  CHECK(std::get<Wait>(driver.reply).since == 1);
}

TEST_CASE("kill ends the object and keeps the container") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Kill{}).has_value());
  CHECK(driver.effect<AbortObject>() != nullptr);
  driver.tell(ObjectLoaded{});
  CHECK(driver.effect<TearDown>() == nullptr);
  CHECK(driver.container<Ready>());
  // The SDK's memory is gone with the object: its env is told again before anything runs.
  CHECK(driver.effect<ApplyEnv>() != nullptr);
  CHECK(driver.effect<Restore>() == nullptr);
}

TEST_CASE("a container that nobody heard stopping is noticed") {
  Driver driver;
  driver.create();
  driver.make_ready();
  driver.context.container_running = false;
  REQUIRE(driver.ask(Sleep{}).has_value());
  CHECK(driver.emitted("stopped"));
  CHECK(driver.effect<TakeSnapshot>() == nullptr);
}

TEST_CASE("setEnvVars merges, tells the running container, and an unset stays visible") {
  Driver driver;
  driver.create({"basic", {}, {}, EnvMap{{"A", "1"}, {"B", "2"}}});
  driver.make_ready();
  REQUIRE(driver.ask(SetEnvVars{{{"A", std::nullopt}, {"C", "3"}}}).has_value());
  REQUIRE(driver.effect<ApplyEnv>() != nullptr);
  CHECK(driver.effect<ApplyEnv>()->env == EnvMap{{"B", "2"}, {"C", "3"}});
  const auto& payload = std::get<ConfiguredPayload>(driver.events.at(0).payload);
  REQUIRE(payload.env.has_value());
  CHECK(payload.env->at("A") == std::nullopt);
  driver.append_all();
  driver.tell(EnvApplied{1});
  driver.tell(GitConfigured{1});
  REQUIRE(driver.ask(SetEnvVars{}, 1).has_value());
  CHECK(driver.proceeds());
}

TEST_CASE("what cannot be appended is kept, told to a verb, and goes first next time") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(SetKeepAlive{true}).has_value());
  driver.tell(AppendFailed{"unreachable"});
  CHECK(code(driver.ask(SetKeepAlive{true}, 1)) == "stream_unavailable");
  REQUIRE(driver.ask(SetSleepAfter{std::string("5m")}).has_value());
  REQUIRE(driver.events.size() == 2);
  CHECK(std::get<ConfiguredPayload>(driver.events[0].payload).keep_alive == true);
  CHECK(driver.state.outbox.size() == 2);
}
