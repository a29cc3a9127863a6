#include <algorithm>
#include <array>

#include "lifecycle_internal.hpp"
#include "sandboxes/snapshot.hpp"

namespace sandboxes::lifecycle {

namespace {

// A session set-up that a vanished container interrupted is tried again after these waits; nothing of the
// caller's has run by then. A command is never tried again.
constexpr std::array<std::int64_t, 4> kSessionRetryDelaysMs{50, 200, 800, 2000};

/// Stands for an env that this object has not told the SDK, whose memory is the object's.
constexpr std::int64_t kUnknownEnv = -1;

/// The container of a living sandbox, if it is `Case` in this very incarnation.
template <class Case>
Case* current(Live* live, std::int64_t incarnation) {
  if (live == nullptr) return nullptr;
  auto* found = std::get_if<Case>(&live->container);
  return found != nullptr && found->incarnation == incarnation ? found : nullptr;
}

SettingUp* at_step(Live* live, std::int64_t incarnation, SetUpStep step) {
  auto* found = current<SettingUp>(live, incarnation);
  return found != nullptr && found->step == step ? found : nullptr;
}

void give_up_set_up(Turn& turn, Live& live, std::int64_t incarnation, Failure failure) {
  turn.state.failure = std::move(failure);
  live.container = Fresh{incarnation};
}

/// The last step: what changed meanwhile is applied once more.
void settle_env(Turn& turn, Live& live, std::int64_t incarnation, std::int64_t applied) {
  const bool newest = applied == live.config.version;
  live.container = Ready{incarnation, live.config.version, !newest};
  if (!newest) turn.effect(ApplyEnv{incarnation, live.config.env});
}

// ---- A new object instance: nothing of what the last one had begun goes on by itself.

void load_live(Turn& turn, Live& live) {
  turn.effect(ApplySettings{live.config.sleep_after, live.config.keep_alive});
  const bool running = turn.context.container_running;
  const auto stay_or_go = [&](bool was_announced, std::int64_t incarnation, Container stays) {
    if (running) {
      live.container = stays;
    } else {
      container_died(turn, live, was_announced, incarnation);
    }
  };
  const Container was = live.container;
  std::visit(Overloaded{
                 [](const Down&) {},
                 [&](const Booting& c) {
                   stay_or_go(c.announced, c.incarnation,
                              c.announced ? Container{Fresh{c.incarnation}} : Down{});
                 },
                 [&](const Fresh& c) { stay_or_go(true, c.incarnation, c); },
                 // What was restored so far cannot be told: it is done again.
                 [&](const SettingUp& c) { stay_or_go(true, c.incarnation, Fresh{c.incarnation}); },
                 [&](const Ready& c) {
                   stay_or_go(true, c.incarnation, c);
                   if (running) settle_env(turn, live, c.incarnation, kUnknownEnv);
                 },
                 // The sleep was never acknowledged, and its snapshot is not known to be finished.
                 [&](const Snapshotting& c) {
                   stay_or_go(true, c.incarnation, Fresh{c.incarnation});
                   if (running) settle_env(turn, live, c.incarnation, kUnknownEnv);
                 },
                 [&](const TearingDown& c) {
                   stay_or_go(c.announced, c.incarnation, c);
                   if (running) turn.effect(TearDown{c.incarnation});
                 },
             },
             was);
}

void on_loaded(Turn& turn, const ObjectLoaded&) {
  State& state = turn.state;
  state.in_flight = 0;
  state.failure.reset();
  state.lost_snapshot.reset();
  state.outbox_error.clear();
  state.outbox_status = OutboxStatus::idle;
  if (auto* pending = std::get_if<Pending>(&state.life)) {
    // Only the same create, asked again, goes on with it.
    pending->attempt = false;
    state.outbox.clear();
    return;
  }
  if (!state.outbox.empty()) {
    state.outbox_status = OutboxStatus::appending;
    turn.events = state.outbox;
  }
  if (auto* live = std::get_if<Live>(&state.life)) return load_live(turn, *live);
  if (auto* dying = std::get_if<Destroying>(&state.life); dying != nullptr && !dying->torn_down) {
    dying->working = true;
    turn.effect(TearDown{dying->incarnation});
    return;
  }
  if (turn.context.container_running) turn.effect(TearDown{state.incarnation});
}

// ---- The container's own word

/// A container that starts although its sandbox is on its way out, or gone: a boot that the end overtook.
bool end_orphan(Turn& turn) {
  const bool ending = std::holds_alternative<Destroying>(turn.state.life) ||
                      std::holds_alternative<Destroyed>(turn.state.life);
  if (ending && turn.context.container_running) turn.effect(TearDown{turn.state.incarnation});
  return ending;
}

void on_started(Turn& turn, const ContainerStarted&) {
  if (end_orphan(turn)) return;
  auto* live = std::get_if<Live>(&turn.state.life);
  if (live == nullptr) return;
  if (auto* booting = std::get_if<Booting>(&live->container); booting != nullptr && !booting->announced) {
    booting->announced = true;
    turn.record("started", numbered("started", booting->incarnation));
  } else if (std::holds_alternative<Down>(live->container)) {
    // The SDK started it by itself, in the middle of a call.
    const std::int64_t incarnation = ++turn.state.incarnation;
    live->container = Fresh{incarnation};
    turn.record("started", numbered("started", incarnation));
  }
}

void on_stopped(Turn& turn, const ContainerStopped&) {
  auto* live = std::get_if<Live>(&turn.state.life);
  if (live == nullptr || turn.context.container_running) return;
  const std::int64_t incarnation = incarnation_of(live->container);
  const bool effect_will_tell = std::holds_alternative<Down>(live->container) ||
                                std::holds_alternative<Booting>(live->container) ||
                                std::holds_alternative<TearingDown>(live->container);
  if (effect_will_tell) return;
  if (const auto* was = std::get_if<Snapshotting>(&live->container)) {
    constexpr std::string_view reason = "the container stopped during the snapshot";
    turn.note("backup-failed", FailurePayload{std::string(reason), std::nullopt});
    lose_snapshot(turn, *was, std::string(reason));
  }
  container_died(turn, *live, true, incarnation);
}

void on_idle(Turn& turn, const IdleExpired&) {
  if (end_orphan(turn)) return;
  auto* live = std::get_if<Live>(&turn.state.life);
  if (live == nullptr || !turn.context.container_running) return;
  if (live->config.keep_alive || turn.state.in_flight > 0) return;
  if (std::holds_alternative<Down>(live->container)) {
    // A start that nobody waited for: there is nothing in it to keep.
    begin_tear_down(turn, *live, turn.state.incarnation, false, false, 0);
  } else if (const auto* fresh = std::get_if<Fresh>(&live->container)) {
    begin_tear_down(turn, *live, fresh->incarnation, true, false, 0);
  } else if (const auto* ready = std::get_if<Ready>(&live->container); ready != nullptr && !ready->applying) {
    const Ready was = *ready;
    live->container = Snapshotting{was.incarnation, was.config_version, SleepReason::idle};
    turn.effect(TakeSnapshot{was.incarnation, false});
  }
}

void on_booted(Turn& turn, const BootDone& signal) {
  if (end_orphan(turn)) return;
  auto* live = std::get_if<Live>(&turn.state.life);
  const auto* booting = current<Booting>(live, signal.incarnation);
  if (booting == nullptr) return;
  if (!booting->announced) turn.record("started", numbered("started", signal.incarnation));
  live->container = Fresh{signal.incarnation};
}

// ---- Setting up the workspace

void on_restored(Turn& turn, const RestoreDone& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  if (at_step(live, signal.incarnation, SetUpStep::restore) == nullptr || !live->snapshot) return;
  turn.note("workspace-restored", BackupPayload{live->snapshot->id});
  begin_env(turn, *live, signal.incarnation);
}

void on_restore_failed(Turn& turn, const RestoreFailed& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  if (at_step(live, signal.incarnation, SetUpStep::restore) == nullptr || !live->snapshot) return;
  if (signal.expired) {
    turn.note("backup-expired", BackupPayload{live->snapshot->id});
    live->snapshot.reset();
    return begin_env(turn, *live, signal.incarnation);
  }
  if (signal.presigned) {
    turn.note("restore-failed",
              FailurePayload{"presigned transfer: " + signal.error + "; trying the bucket binding",
                             live->snapshot->id});
    turn.effect(Restore{signal.incarnation, *live->snapshot, true});
    return;
  }
  turn.note("restore-failed", FailurePayload{signal.error, live->snapshot->id});
  give_up_set_up(turn, *live, signal.incarnation,
                 {signal.incarnation, FailureKind::restore, "restore", signal.error});
}

void on_env_applied(Turn& turn, const EnvApplied& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  if (auto* step = at_step(live, signal.incarnation, SetUpStep::env)) {
    step->step = SetUpStep::session;
    turn.effect(OpenSession{signal.incarnation, 0});
  } else if (const auto* ready = current<Ready>(live, signal.incarnation);
             ready != nullptr && ready->applying) {
    turn.effect(ConfigureGit{signal.incarnation});
  }
}

void on_session_opened(Turn& turn, const SessionOpened& signal) {
  auto* step = at_step(std::get_if<Live>(&turn.state.life), signal.incarnation, SetUpStep::session);
  if (step == nullptr) return;
  step->step = SetUpStep::git;
  turn.effect(ConfigureGit{signal.incarnation});
}

void on_git_configured(Turn& turn, const GitConfigured& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  if (const auto* step = at_step(live, signal.incarnation, SetUpStep::git)) {
    settle_env(turn, *live, signal.incarnation, step->config_version);
  } else if (const auto* ready = current<Ready>(live, signal.incarnation);
             ready != nullptr && ready->applying) {
    settle_env(turn, *live, signal.incarnation, ready->config_version);
  }
}

// ---- Snapshots

void on_snapshot_done(Turn& turn, const SnapshotDone& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  const auto* found = current<Snapshotting>(live, signal.incarnation);
  if (found == nullptr) return;
  const Snapshotting was = *found;
  const std::int64_t usable_seconds = signal.ttl_seconds - kSnapshotMarginSeconds;
  live->snapshot = SnapshotHandle{signal.id, signal.created_at + usable_seconds * 1000, signal.manifest};
  turn.record("backup-created", "backup-created:" + signal.id, BackupPayload{signal.id});
  if (was.reason == SleepReason::idle && (turn.state.in_flight > 0 || live->config.keep_alive)) {
    return settle_env(turn, *live, was.incarnation, was.config_version);
  }
  begin_tear_down(turn, *live, was.incarnation, true, true, was.config_version);
}

void on_snapshot_failed(Turn& turn, const SnapshotFailed& signal) {
  auto* live = std::get_if<Live>(&turn.state.life);
  const auto* found = current<Snapshotting>(live, signal.incarnation);
  if (found == nullptr) return;
  const Snapshotting was = *found;
  if (signal.presigned) {
    turn.note(
        "backup-failed",
        FailurePayload{"presigned transfer: " + signal.error + "; trying the bucket binding", std::nullopt});
    turn.effect(TakeSnapshot{was.incarnation, true});
    return;
  }
  turn.note("backup-failed", FailurePayload{signal.error, std::nullopt});
  if (was.reason == SleepReason::idle && (turn.state.in_flight > 0 || live->config.keep_alive)) {
    return settle_env(turn, *live, was.incarnation, was.config_version);
  }
  begin_tear_down(turn, *live, was.incarnation, true, true, was.config_version);
  lose_snapshot(turn, was, signal.error);
}

// ---- The end

void on_torn_down(Turn& turn, const TornDown& signal) {
  if (auto* dying = std::get_if<Destroying>(&turn.state.life)) {
    if (dying->torn_down || dying->incarnation != signal.incarnation) return;
    dying->torn_down = true;
    dying->working = false;
    if (dying->announced) turn.record("stopped", numbered("stopped", dying->incarnation));
    turn.record("destroyed", "destroyed");
    return;
  }
  auto* live = std::get_if<Live>(&turn.state.life);
  const auto* found = current<TearingDown>(live, signal.incarnation);
  if (found != nullptr) container_gone(turn, *live, found->announced, signal.incarnation);
}

void on_tear_down_failed(Turn& turn, const EffectFailed& signal) {
  const Failure failure{signal.incarnation, FailureKind::tear_down, "tearDown", signal.error};
  if (auto* dying = std::get_if<Destroying>(&turn.state.life)) {
    if (dying->incarnation != signal.incarnation || dying->torn_down) return;
    dying->working = false;
    turn.state.failure = failure;
    return;
  }
  auto* live = std::get_if<Live>(&turn.state.life);
  const auto* found = current<TearingDown>(live, signal.incarnation);
  if (found == nullptr) return;
  const TearingDown was = *found;
  turn.state.failure = failure;
  if (!turn.context.container_running) return container_gone(turn, *live, was.announced, was.incarnation);
  if (was.was_ready) {
    settle_env(turn, *live, was.incarnation, was.config_version);
  } else if (was.announced) {
    live->container = Fresh{was.incarnation};
  } else {
    live->container = Down{};
  }
}

void on_set_up_failed(Turn& turn, Live& live, SettingUp& step, const EffectFailed& signal) {
  const auto tried = static_cast<std::size_t>(step.attempt);
  if (step.step == SetUpStep::session && signal.interrupted && tried <= kSessionRetryDelaysMs.size()) {
    step.attempt += 1;
    turn.effect(OpenSession{signal.incarnation, kSessionRetryDelaysMs[tried - 1]});
    return;
  }
  give_up_set_up(turn, live, signal.incarnation,
                 {signal.incarnation, FailureKind::set_up, signal.effect, signal.error});
}

void on_effect_failed(Turn& turn, const EffectFailed& signal) {
  if (signal.effect == "tearDown") return on_tear_down_failed(turn, signal);
  auto* live = std::get_if<Live>(&turn.state.life);
  if (live == nullptr) return;
  if (signal.effect == "boot") {
    const auto* booting = current<Booting>(live, signal.incarnation);
    if (booting == nullptr) return;
    turn.state.failure = Failure{signal.incarnation, FailureKind::boot, signal.effect, signal.error};
    return container_gone(turn, *live, booting->announced, signal.incarnation);
  }
  // An image without git is still a sandbox.
  if (signal.effect == "configureGit") return on_git_configured(turn, {signal.incarnation});
  if (auto* step = current<SettingUp>(live, signal.incarnation))
    return on_set_up_failed(turn, *live, *step, signal);
  if (auto* ready = current<Ready>(live, signal.incarnation); ready != nullptr && ready->applying) {
    ready->applying = false;
    turn.state.failure = Failure{signal.incarnation, FailureKind::set_up, signal.effect, signal.error};
  }
}

// ---- The stream and the work

void on_appended(Turn& turn, const EventsAppended& signal) {
  auto& outbox = turn.state.outbox;
  std::vector<std::string> names;
  for (const std::string& key : signal.keys) {
    const auto found =
        std::find_if(outbox.begin(), outbox.end(), [&](const Event& e) { return e.key == key; });
    if (found == outbox.end()) continue;
    names.push_back(found->name);
    outbox.erase(found);
  }
  if (outbox.empty()) {
    turn.state.outbox_status = OutboxStatus::idle;
    turn.state.outbox_error.clear();
  }
  // Everything else was true before it was written down; birth and death are true because they are.
  for (const std::string& name : names) {
    if (name == "created" || name == "destroyed")
      turn.state = evolve(std::move(turn.state), name, NoPayload{});
  }
}

void on_append_failed(Turn& turn, const AppendFailed& signal) {
  if (turn.state.outbox.empty()) return;
  turn.state.outbox_status = OutboxStatus::failed;
  turn.state.outbox_error = signal.error;
  if (auto* pending = std::get_if<Pending>(&turn.state.life)) pending->attempt = false;
}

void on_work_finished(Turn& turn, const WorkFinished&) {
  turn.state.in_flight = std::max<std::int64_t>(0, turn.state.in_flight - 1);
}

}  // namespace

Decision react(State state, const Signal& signal, const Context& context) {
  const State before = state;
  Turn turn{std::move(state), context, {}, {}};
  std::visit(Overloaded{
                 [&](const ObjectLoaded& s) { on_loaded(turn, s); },
                 [&](const ContainerStarted& s) { on_started(turn, s); },
                 [&](const ContainerStopped& s) { on_stopped(turn, s); },
                 [&](const IdleExpired& s) { on_idle(turn, s); },
                 [&](const BootDone& s) { on_booted(turn, s); },
                 [&](const SnapshotDone& s) { on_snapshot_done(turn, s); },
                 [&](const SnapshotFailed& s) { on_snapshot_failed(turn, s); },
                 [&](const RestoreDone& s) { on_restored(turn, s); },
                 [&](const RestoreFailed& s) { on_restore_failed(turn, s); },
                 [&](const EnvApplied& s) { on_env_applied(turn, s); },
                 [&](const SessionOpened& s) { on_session_opened(turn, s); },
                 [&](const GitConfigured& s) { on_git_configured(turn, s); },
                 [&](const TornDown& s) { on_torn_down(turn, s); },
                 [&](const EffectFailed& s) { on_effect_failed(turn, s); },
                 [&](const WorkFinished& s) { on_work_finished(turn, s); },
                 [&](const EventsAppended& s) { on_appended(turn, s); },
                 [&](const AppendFailed& s) { on_append_failed(turn, s); },
             },
             signal);
  return finish(std::move(turn), before, Proceed{});
}

}  // namespace sandboxes::lifecycle
