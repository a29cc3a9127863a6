#include <algorithm>

#include "lifecycle_internal.hpp"

namespace sandboxes::lifecycle {

namespace {

// A container that dies again and again while somebody waits is given up after
// this many lives.
constexpr std::int64_t kBootAttempts = 3;

enum class Awaited : std::uint8_t { ready, gone };

/// Whether an attempt on `since` or a later incarnation failed while this
/// command waited for it.
Result<void> check_failure(const Turn& turn, const Live& live, std::optional<std::int64_t> since,
                           Awaited awaited) {
  const auto& failure = turn.state.failure;
  if (!since || !failure || failure->incarnation < *since) return {};
  if ((failure->kind == FailureKind::tear_down) != (awaited == Awaited::gone)) return {};
  return tl::unexpected<Error>(failure_error(*failure, path_of(live.record)));
}

/// Whether the snapshot that this command waited for was lost. Told once the container is gone, so that what
/// is said holds.
Result<void> check_snapshot(const Turn& turn, const Live& live, std::optional<std::int64_t> since) {
  const auto& lost = turn.state.lost_snapshot;
  if (!since || !lost || lost->incarnation < *since) return {};
  return fail(SnapshotLost{path_of(live.record), lost->reason});
}

/// Brings the container up and the workspace into it. `since` is the first
/// incarnation that this command asked for.
Result<Reply> ensure_ready(Turn& turn, Live& live, std::optional<std::int64_t> since,
                           bool joins_idle_snapshot) {
  if (!std::holds_alternative<Ready>(live.container)) {
    if (auto ok = check_failure(turn, live, since, Awaited::ready); !ok) return propagate(ok);
  }
  const auto wait = [&](std::int64_t incarnation) { return Reply{Wait{since.value_or(incarnation)}}; };
  return std::visit(
      Overloaded{
          [&](Down) -> Result<Reply> {
            if (since && turn.state.incarnation - *since >= kBootAttempts - 1) {
              return fail(
                  ContainerStartFailed{path_of(live.record), "it ended again while it was being set up"});
            }
            return wait(begin_boot(turn, live));
          },
          [&](Booting c) -> Result<Reply> { return wait(c.incarnation); },
          [&](Fresh c) -> Result<Reply> {
            begin_set_up(turn, live, c.incarnation);
            return wait(c.incarnation);
          },
          [&](SettingUp c) -> Result<Reply> { return wait(c.incarnation); },
          [&](Ready c) -> Result<Reply> { return c.applying ? wait(c.incarnation) : Reply{Proceed{}}; },
          [&](Snapshotting c) -> Result<Reply> {
            // An idle sleep gives way to work: it is checked again after the
            // snapshot.
            if (joins_idle_snapshot && c.reason == SleepReason::idle) return Reply{Proceed{}};
            return wait(c.incarnation + 1);
          },
          [&](TearingDown c) -> Result<Reply> { return wait(c.incarnation + 1); },
      },
      live.container);
}

/// One step towards a container that is gone; `since` is the incarnation that
/// has to go.
Result<Reply> ensure_gone(Turn& turn, Live& live, std::int64_t since, bool first, SleepReason reason) {
  if (auto ok = check_failure(turn, live, first ? std::nullopt : std::optional{since}, Awaited::gone); !ok)
    return propagate(ok);
  const Reply wait{Wait{since}};
  return std::visit(Overloaded{
                        [&](Down) -> Result<Reply> { return Reply{Proceed{}}; },
                        [&](Booting) -> Result<Reply> { return wait; },
                        [&](Fresh c) -> Result<Reply> {
                          begin_tear_down(turn, live, c.incarnation, true, false, 0);
                          return wait;
                        },
                        [&](SettingUp) -> Result<Reply> { return wait; },
                        [&](Ready c) -> Result<Reply> {
                          turn.state.failure.reset();
                          live.container = Snapshotting{c.incarnation, c.config_version, reason};
                          turn.effect(TakeSnapshot{c.incarnation, false});
                          return wait;
                        },
                        [&](Snapshotting c) -> Result<Reply> {
                          if (c.reason == SleepReason::idle) {
                            live.container = Snapshotting{c.incarnation, c.config_version, reason};
                          }
                          return wait;
                        },
                        [&](TearingDown) -> Result<Reply> { return wait; },
                    },
                    live.container);
}

Result<Reply> decide_assert_created(Turn& turn, const AssertCreated&, const Command& command) {
  auto live = living(turn, command);
  if (!live) return propagate(live);
  return Reply{Proceed{}};
}

Result<Reply> decide_start(Turn& turn, const Start&, const Command& command) {
  auto live = living(turn, command);
  if (!live) return propagate(live);
  notice_missed_stop(turn, **live);
  if (!command.since) turn.note("start-requested");
  auto ready = ensure_ready(turn, **live, command.since, false);
  if (!ready || std::holds_alternative<Wait>(*ready)) return ready;
  return once_recorded(turn, command, path_of((*live)->record));
}

Result<Reply> decide_sleep(Turn& turn, const Sleep&, const Command& command) {
  auto live = living(turn, command);
  if (!live) return propagate(live);
  notice_missed_stop(turn, **live);
  if (!command.since) turn.note("sleep-requested");
  const std::int64_t since = command.since.value_or(turn.state.incarnation);
  if (incarnation_of((*live)->container) <= since) {
    auto gone = ensure_gone(turn, **live, since, !command.since, SleepReason::asked);
    if (!gone || std::holds_alternative<Wait>(*gone)) return gone;
  }
  if (auto kept = check_snapshot(turn, **live, command.since); !kept) return propagate(kept);
  return once_recorded(turn, command, path_of((*live)->record));
}

Result<Reply> decide_restart(Turn& turn, const Restart&, const Command& command) {
  auto live = living(turn, command);
  if (!live) return propagate(live);
  notice_missed_stop(turn, **live);
  if (!command.since) turn.note("restart-requested");
  // What runs now has to go, and its successor has to be ready; the `since` of
  // the wait stays that of the old one.
  const std::int64_t since = command.since.value_or(turn.state.incarnation);
  const bool old_one_is_up =
      !std::holds_alternative<Down>((*live)->container) && incarnation_of((*live)->container) <= since;
  if (!old_one_is_up) {
    if (auto kept = check_snapshot(turn, **live, command.since); !kept) return propagate(kept);
  }
  auto reply = old_one_is_up ? ensure_gone(turn, **live, since, !command.since, SleepReason::restart)
                             : ensure_ready(turn, **live, since + 1, false);
  if (!reply) return reply;
  if (std::holds_alternative<Wait>(*reply)) return Reply{Wait{since}};
  if (old_one_is_up) return Reply{Wait{since}};
  return once_recorded(turn, Command{command.request, command.identity, since}, path_of((*live)->record));
}

Result<Reply> decide_kill(Turn& turn, const Kill&, const Command& command) {
  auto live = living(turn, command);
  if (!live) return propagate(live);
  turn.note("kill-requested");
  turn.effect(AbortObject{});
  return Reply{Proceed{}};
}

void record_configured(Turn& turn, Live& live, ConfiguredPayload payload) {
  ++live.config.version;
  turn.record("configured", numbered("configured", live.config.version), std::move(payload));
}

Result<Reply> decide_set_env_vars(Turn& turn, const SetEnvVars& request, const Command& command) {
  auto found = living(turn, command);
  if (!found) return propagate(found);
  Live& live = **found;
  notice_missed_stop(turn, live);
  if (auto ok = check_failure(turn, live, command.since, Awaited::ready); !ok) return propagate(ok);
  if (!command.since) {
    auto merged = merge_env(live.config.env, request.changes, request.allow_raw_secrets);
    if (!merged) return propagate(merged);
    live.config.env = std::move(merged->stored);
    record_configured(turn, live, {std::move(merged->configured), std::nullopt, std::nullopt});
    turn.state.failure.reset();
    auto* ready = std::get_if<Ready>(&live.container);
    if (ready != nullptr && !ready->applying) {
      live.container = Ready{ready->incarnation, live.config.version, true};
      turn.effect(ApplyEnv{incarnation_of(live.container), live.config.env});
    }
  }
  const auto* ready = std::get_if<Ready>(&live.container);
  if (ready != nullptr && ready->applying) return Reply{Wait{command.since.value_or(ready->incarnation)}};
  return once_recorded(turn, command, path_of(live.record));
}

Result<Reply> decide_setting(Turn& turn, const Command& command, ConfiguredPayload payload) {
  auto found = living(turn, command);
  if (!found) return propagate(found);
  Live& live = **found;
  if (!command.since) {
    if (payload.sleep_after) live.config.sleep_after = payload.sleep_after;
    if (payload.keep_alive) live.config.keep_alive = *payload.keep_alive;
    turn.effect(ApplySettings{live.config.sleep_after, live.config.keep_alive});
    record_configured(turn, live, std::move(payload));
    // The env is as it was: a container that had the newest one still has it.
    if (auto* ready = std::get_if<Ready>(&live.container)) ready->config_version += 1;
    if (auto* setting = std::get_if<SettingUp>(&live.container)) setting->config_version += 1;
  }
  return once_recorded(turn, command, path_of(live.record));
}

Result<Reply> decide_admit(Turn& turn, const Admit& request, const Command& command) {
  auto found = living(turn, command);
  if (!found) return propagate(found);
  for (const Fence& fence : fences()) {
    if (fence.method == request.method) return fail(MethodFenced{request.method, std::string(fence.advice)});
  }
  Live& live = **found;
  notice_missed_stop(turn, live);
  auto ready = ensure_ready(turn, live, command.since, true);
  if (!ready || std::holds_alternative<Wait>(*ready)) return ready;
  // A stream that cannot be reached does not keep anybody from working: its
  // events are kept.
  if (turn.state.outbox_status == OutboxStatus::appending) {
    return Reply{Wait{command.since.value_or(turn.state.incarnation)}};
  }
  ++turn.state.in_flight;
  return ready;
}

}  // namespace

Result<Decision> decide(State state, const Command& command, const Context& context) {
  const State before = state;
  Turn turn{std::move(state), context, {}, {}};
  // What could not be appended is tried again with the next thing that anybody
  // asks.
  const bool retry = !command.since && turn.state.outbox_status == OutboxStatus::failed &&
                     !std::holds_alternative<Pending>(turn.state.life);
  if (retry) {
    turn.state.outbox_status = OutboxStatus::appending;
    turn.events = turn.state.outbox;
  }
  auto reply = std::visit(
      Overloaded{
          [&](const Create& request) { return decide_create(turn, request, command); },
          [&](const AssertCreated& request) { return decide_assert_created(turn, request, command); },
          [&](const Start& request) { return decide_start(turn, request, command); },
          [&](const Sleep& request) { return decide_sleep(turn, request, command); },
          [&](const Restart& request) { return decide_restart(turn, request, command); },
          [&](const Kill& request) { return decide_kill(turn, request, command); },
          [&](const Destroy& request) { return decide_destroy(turn, request, command); },
          [&](const SetEnvVars& request) { return decide_set_env_vars(turn, request, command); },
          [&](const SetSleepAfter& request) {
            return decide_setting(turn, command, {std::nullopt, request.value, std::nullopt});
          },
          [&](const SetKeepAlive& request) {
            return decide_setting(turn, command, {std::nullopt, std::nullopt, request.keep_alive});
          },
          [&](const Admit& request) { return decide_admit(turn, request, command); },
      },
      command.request);
  if (!reply) return propagate(reply);
  return finish(std::move(turn), before, *reply);
}

}  // namespace sandboxes::lifecycle
