#include "lifecycle_driver.hpp"

/// What becomes of the workspace when a container goes and comes.
using namespace lifecycle_driver;

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
