#include "sandboxes/lifecycle.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

using namespace sandboxes;
using namespace sandboxes::lifecycle;

namespace {

constexpr std::int64_t kDay = 86'400'000;

/// A sandbox's decider with what the platform would be doing, driven by hand.
struct Driver {
  State state = initial_state();
  Context context{1'000, "basic", false};
  std::vector<Event> events;
  std::vector<Effect> effects;
  std::variant<Proceed, Wait> reply;

  void take(Decision decision) {
    state = std::move(decision.state);
    events = std::move(decision.events);
    effects = std::move(decision.effects);
    reply = decision.reply;
  }
  Result<void> ask(Request request, std::optional<std::int64_t> since = std::nullopt) {
    auto decision = decide(state, {std::move(request), Identity{"prj_1", "/sandboxes/a"}, since}, context);
    if (!decision) return propagate(decision);
    take(std::move(*decision));
    return {};
  }
  void tell(const Signal& signal) { take(react(state, signal, context)); }
  void append_all() {
    std::vector<std::string> keys;
    for (const Event& event : state.outbox) keys.push_back(event.key);
    tell(EventsAppended{keys});
  }
  void create(CreateInput input = {"basic", std::nullopt, std::nullopt, std::nullopt}) {
    REQUIRE(ask(Create{std::move(input)}).has_value());
    append_all();
  }
  std::int64_t boot() {
    REQUIRE(ask(Start{}).has_value());
    const std::int64_t incarnation = state.incarnation;
    context.container_running = true;
    tell(ContainerStarted{});
    append_all();
    tell(BootDone{incarnation});
    return incarnation;
  }
  std::int64_t make_ready() {
    const std::int64_t incarnation = boot();
    REQUIRE(ask(Start{}, incarnation).has_value());
    if (effect<Restore>() != nullptr) tell(RestoreDone{incarnation});
    tell(EnvApplied{incarnation});
    tell(SessionOpened{incarnation});
    tell(GitConfigured{incarnation});
    append_all();
    return incarnation;
  }
  template <class E>
  const E* effect() const {
    for (const Effect& one : effects) {
      if (const auto* found = std::get_if<E>(&one)) return found;
    }
    return nullptr;
  }
  [[nodiscard]] bool emitted(std::string_view name) const {
    return std::any_of(events.begin(), events.end(), [&](const Event& e) { return e.name == name; });
  }
  [[nodiscard]] std::optional<Payload> payload_of(std::string_view name) const {
    const auto found =
        std::find_if(events.begin(), events.end(), [&](const Event& e) { return e.name == name; });
    return found == events.end() ? std::nullopt : std::optional(found->payload);
  }
  [[nodiscard]] bool proceeds() const { return std::holds_alternative<Proceed>(reply); }
  const Live& live() const { return std::get<Live>(state.life); }
  template <class C>
  [[nodiscard]] bool container() const {
    return std::holds_alternative<C>(live().container);
  }
  void snapshot_done(std::int64_t incarnation, std::string id) {
    tell(SnapshotDone{incarnation, std::move(id), context.now, 7'776'000, "{}"});
  }
};

std::string code(const Result<void>& refused) {
  REQUIRE_FALSE(refused.has_value());
  return std::string(describe(refused.error()).code);
}

}  // namespace

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

TEST_CASE("sleep takes a snapshot, tears down, and start restores it") {
  Driver driver;
  driver.create();
  const std::int64_t incarnation = driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  CHECK(driver.emitted("sleep-requested"));
  REQUIRE(driver.effect<TakeSnapshot>() != nullptr);
  driver.snapshot_done(incarnation, "b-1");
  CHECK(driver.emitted("backup-created"));
  REQUIRE(driver.effect<TearDown>() != nullptr);
  driver.context.container_running = false;
  driver.tell(TornDown{incarnation});
  CHECK(driver.emitted("stopped"));
  REQUIRE(driver.ask(Sleep{}, incarnation).has_value());
  CHECK_FALSE(driver.proceeds());
  driver.append_all();
  REQUIRE(driver.ask(Sleep{}, incarnation).has_value());
  CHECK(driver.proceeds());
  const std::int64_t next = driver.boot();
  REQUIRE(driver.ask(Start{}, next).has_value());
  REQUIRE(driver.effect<Restore>() != nullptr);
  CHECK(driver.effect<Restore>()->handle.id == "b-1");
  driver.tell(RestoreDone{incarnation});
  CHECK(driver.effects.empty());
  driver.tell(RestoreDone{next});
  CHECK(driver.emitted("workspace-restored"));
}

TEST_CASE("a snapshot that fails leaves the last good one and never keeps the container") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  driver.append_all();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.tell(SnapshotFailed{2, "403 from policy", true});
  CHECK(driver.emitted("backup-failed"));
  REQUIRE(driver.effect<TakeSnapshot>() != nullptr);
  CHECK(driver.effect<TakeSnapshot>()->binding_only);
  driver.tell(SnapshotFailed{2, "bucket refused", false});
  CHECK(driver.emitted("backup-failed"));
  CHECK(driver.effect<TearDown>() != nullptr);
  CHECK(driver.live().snapshot->id == "b-1");
  // Who asked for it is told once the container is gone, also when somebody else has woken the sandbox by
  // then.
  REQUIRE(driver.ask(Sleep{}, 2).has_value());
  CHECK_FALSE(driver.proceeds());
  driver.context.container_running = false;
  driver.tell(TornDown{2});
  driver.append_all();
  CHECK(code(driver.ask(Sleep{}, 2)) == "snapshot_failed");
  CHECK(code(driver.ask(Restart{}, 2)) == "snapshot_failed");
  driver.make_ready();
  CHECK(code(driver.ask(Sleep{}, 2)) == "snapshot_failed");
}

TEST_CASE("a container that ends during the snapshot that was asked for loses it for those who asked") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.context.container_running = false;
  driver.tell(ContainerStopped{});
  CHECK(driver.emitted("backup-failed"));
  driver.append_all();
  CHECK(code(driver.ask(Sleep{}, 1)) == "snapshot_failed");
  // A sleep that is asked for now finds it asleep: the stream has told the rest.
  REQUIRE(driver.ask(Sleep{}).has_value());
  CHECK(driver.proceeds());
}

TEST_CASE("a workspace that is not provisioned is torn down without a snapshot") {
  Driver driver;
  driver.create();
  driver.boot();
  REQUIRE(driver.ask(Sleep{}).has_value());
  CHECK(driver.effect<TakeSnapshot>() == nullptr);
  CHECK(driver.effect<TearDown>() != nullptr);
}

TEST_CASE("idle expiry waits for work and keepAlive, before the snapshot and after it") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Admit{"exec"}).has_value());
  driver.tell(IdleExpired{});
  CHECK(driver.effects.empty());
  driver.tell(WorkFinished{});
  driver.tell(IdleExpired{});
  REQUIRE(driver.effect<TakeSnapshot>() != nullptr);
  REQUIRE(driver.ask(Admit{"exec"}).has_value());
  CHECK(driver.proceeds());
  driver.snapshot_done(1, "b-1");
  CHECK(driver.effect<TearDown>() == nullptr);
  CHECK(driver.container<Ready>());
  driver.append_all();
  driver.tell(WorkFinished{});
  REQUIRE(driver.ask(SetKeepAlive{true}).has_value());
  CHECK(driver.effect<ApplySettings>() != nullptr);
  driver.append_all();
  driver.tell(IdleExpired{});
  CHECK(driver.effects.empty());
  REQUIRE(driver.ask(SetKeepAlive{false}).has_value());
  driver.append_all();
  driver.tell(IdleExpired{});
  CHECK(driver.effect<TakeSnapshot>() != nullptr);
}

TEST_CASE("an expired snapshot gives an empty workspace and says so") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  driver.append_all();
  driver.context.now += 90 * kDay;
  driver.boot();
  REQUIRE(driver.ask(Start{}, 2).has_value());
  CHECK(driver.emitted("backup-expired"));
  CHECK(driver.effect<Restore>() == nullptr);
  CHECK(driver.effect<ApplyEnv>() != nullptr);
  CHECK_FALSE(driver.live().snapshot.has_value());
}

TEST_CASE("a restore that fails keeps the handle, refuses who waits, and runs again for the next") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  driver.append_all();
  driver.boot();
  REQUIRE(driver.ask(Admit{"exec"}, 2).has_value());
  driver.tell(RestoreFailed{2, "boom", false, false});
  CHECK(driver.emitted("restore-failed"));
  CHECK(code(driver.ask(Admit{"exec"}, 2)) == "workspace_restore_failed");
  CHECK(driver.live().snapshot->id == "b-1");
  REQUIRE(driver.ask(Admit{"exec"}).has_value());
  CHECK(driver.effect<Restore>() != nullptr);
}

TEST_CASE("a container restart overtakes a restore") {
  Driver driver;
  driver.create();
  driver.make_ready();
  REQUIRE(driver.ask(Sleep{}).has_value());
  driver.snapshot_done(1, "b-1");
  driver.context.container_running = false;
  driver.tell(TornDown{1});
  driver.append_all();
  driver.boot();
  REQUIRE(driver.ask(Start{}, 2).has_value());
  driver.context.container_running = false;
  driver.tell(ContainerStopped{});
  CHECK(driver.emitted("stopped"));
  driver.context.container_running = true;
  driver.tell(ContainerStarted{});
  driver.append_all();
  driver.tell(RestoreDone{2});
  CHECK(driver.container<Fresh>());
  REQUIRE(driver.ask(Start{}, 2).has_value());
  REQUIRE(driver.effect<Restore>() != nullptr);
  CHECK(driver.effect<Restore>()->incarnation == 3);
}

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
