#include "sandboxes/lifecycle.hpp"

#include <algorithm>
#include <array>

#include "lifecycle_internal.hpp"

namespace sandboxes::lifecycle {

namespace {

// Egress handlers belong to the door: whoever could change them on the container would pass by policy.
constexpr std::string_view kUseDoor =
    "a sandbox's traffic is decided by its project's egress policy (itx.egress)";

constexpr std::array kFences{
    Fence{"mountBucket",
          "its traffic would bypass the project's egress; keep files in /workspace, which sleeps and wakes "
          "with the "
          "sandbox, or push them to a repository"},
    Fence{"unmountBucket", "nothing can be mounted; /workspace persists by itself"},
    Fence{"exposePort", "use tunnels (tunnels.get(port)) to reach a port from outside"},
    Fence{"unexposePort", "use tunnels.destroy(...)"},
    Fence{"getExposedPorts", "use tunnels.list()"},
    Fence{"setOutboundHandler", kUseDoor},
    Fence{"setOutboundByHost", kUseDoor},
    Fence{"setOutboundByHosts", kUseDoor},
    Fence{"removeOutboundByHost", kUseDoor},
    Fence{"setAllowedHosts", kUseDoor},
    Fence{"setDeniedHosts", kUseDoor},
    Fence{"allowHost", kUseDoor},
    Fence{"denyHost", kUseDoor},
    Fence{"removeAllowedHost", kUseDoor},
    Fence{"removeDeniedHost", kUseDoor},
    Fence{"configure", "set one thing at a time: setSleepAfter, setKeepAlive, setEnvVars"},
    Fence{"setSandboxName", "a sandbox's name is its path, given once by create"},
    Fence{"setTransport", "the transport is the deployment's choice (SANDBOX_TRANSPORT)"},
    Fence{"schedule", "run timers in your own Worker, and call the sandbox from there"},
};

}  // namespace

std::span<const Fence> fences() {
  return kFences;
}

State initial_state() {
  return {};
}

namespace {

/// An error text is anybody's: it is cut so that its event stays small, at a character's start.
std::string shortened(std::string text) {
  constexpr std::size_t kLimit = 2000;
  if (text.empty()) return "unknown";
  if (text.size() <= kLimit) return text;
  std::size_t end = kLimit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text;
}

}  // namespace

void Turn::note(std::string_view name, Payload payload) {
  if (auto* failure = std::get_if<FailurePayload>(&payload))
    failure->error = shortened(std::move(failure->error));
  events.push_back({std::string(name), std::move(payload), {}, false});
}

void Turn::record(std::string_view name, std::string key, Payload payload) {
  Event event{std::string(name), std::move(payload), std::move(key), true};
  // What failed before goes first, so that the stream keeps the order of what happened.
  if (state.outbox_status == OutboxStatus::failed)
    events.insert(events.end(), state.outbox.begin(), state.outbox.end());
  state.outbox.push_back(event);
  state.outbox_status = OutboxStatus::appending;
  events.push_back(std::move(event));
}

std::string numbered(std::string_view name, std::int64_t number) {
  return std::string(name) + ":" + std::to_string(number);
}

const std::string& path_of(const Record& record) {
  return record.identity.path;
}

std::int64_t incarnation_of(const Container& container) {
  return std::visit(Overloaded{
                        [](const Down&) { return std::int64_t{0}; },
                        [](const Booting& c) { return c.incarnation; },
                        [](const Fresh& c) { return c.incarnation; },
                        [](const SettingUp& c) { return c.incarnation; },
                        [](const Ready& c) { return c.incarnation; },
                        [](const Snapshotting& c) { return c.incarnation; },
                        [](const TearingDown& c) { return c.incarnation; },
                    },
                    container);
}

void container_gone(Turn& turn, Live& live, bool announced, std::int64_t incarnation) {
  live.container = Down{};
  if (announced) turn.record("stopped", numbered("stopped", incarnation));
}

void container_died(Turn& turn, Live& live, bool announced, std::int64_t incarnation) {
  const auto& reason = turn.context.container_end;
  if (!announced || !reason || reason->empty()) return container_gone(turn, live, announced, incarnation);
  live.container = Down{};
  turn.record("stopped", numbered("stopped", incarnation), StoppedPayload{shortened(*reason)});
}

void notice_missed_stop(Turn& turn, Live& live) {
  if (turn.context.container_running) return;
  if (!std::holds_alternative<Fresh>(live.container) && !std::holds_alternative<Ready>(live.container))
    return;
  container_died(turn, live, true, incarnation_of(live.container));
}

std::int64_t begin_boot(Turn& turn, Live& live) {
  const std::int64_t incarnation = ++turn.state.incarnation;
  turn.state.failure.reset();
  live.container = Booting{incarnation, false};
  turn.effect(Boot{incarnation});
  return incarnation;
}

void begin_env(Turn& turn, Live& live, std::int64_t incarnation) {
  live.container = SettingUp{incarnation, SetUpStep::env, 1, live.config.version};
  turn.effect(ApplyEnv{incarnation, live.config.env});
}

void begin_set_up(Turn& turn, Live& live, std::int64_t incarnation) {
  turn.state.failure.reset();
  if (live.snapshot && live.snapshot->expires_at <= turn.context.now) {
    turn.note("backup-expired", BackupPayload{live.snapshot->id});
    live.snapshot.reset();
  }
  if (!live.snapshot) return begin_env(turn, live, incarnation);
  live.container = SettingUp{incarnation, SetUpStep::restore, 1, live.config.version};
  turn.effect(Restore{incarnation, *live.snapshot, false});
}

void begin_tear_down(Turn& turn, Live& live, std::int64_t incarnation, bool announced, bool was_ready,
                     std::int64_t config_version) {
  turn.state.failure.reset();
  live.container = TearingDown{incarnation, config_version, announced, was_ready};
  turn.effect(TearDown{incarnation});
}

void lose_snapshot(Turn& turn, const Snapshotting& was, std::string reason) {
  if (was.reason == SleepReason::idle) return;
  turn.state.lost_snapshot = SnapshotLoss{was.incarnation, std::move(reason)};
}

namespace {

/// What of a container outlives the object that holds it: a load begins every set-up anew.
Container stored_part(const Container& container) {
  return std::visit(Overloaded{
                        [](const Booting& c) -> Container {
                          if (c.announced) return Fresh{c.incarnation};
                          return c;
                        },
                        [](const SettingUp& c) -> Container { return Fresh{c.incarnation}; },
                        [](const Ready& c) -> Container {
                          return Ready{c.incarnation, 0, false};
                        },
                        [](const auto& c) -> Container { return c; },
                    },
                    container);
}

/// What of a state outlives the object that holds it.
State stored_part(State state) {
  state.in_flight = 0;
  state.outbox_status = OutboxStatus::idle;
  state.outbox_error.clear();
  state.failure.reset();
  state.lost_snapshot.reset();
  if (auto* pending = std::get_if<Pending>(&state.life)) pending->attempt = false;
  if (auto* live = std::get_if<Live>(&state.life)) live->container = stored_part(live->container);
  if (auto* dying = std::get_if<Destroying>(&state.life)) dying->working = false;
  return state;
}

}  // namespace

Decision finish(Turn turn, const State& before, Reply reply) {
  const bool changed = turn.state != before;
  const bool persist = changed && stored_part(turn.state) != stored_part(before);
  return {std::move(turn.state), std::move(turn.events), std::move(turn.effects), reply, persist, changed};
}

Error failure_error(const Failure& failure, const std::string& path) {
  switch (failure.kind) {
    case FailureKind::boot:
      return ContainerStartFailed{path, failure.reason};
    case FailureKind::restore:
      return WorkspaceRestoreFailed{path, failure.reason};
    case FailureKind::set_up:
      return SetUpFailed{path, failure.step, failure.reason};
    case FailureKind::tear_down:
      return TearDownFailed{path, failure.reason};
  }
  return SetUpFailed{path, failure.step, failure.reason};
}

namespace {

void apply_configured(Config& config, const ConfiguredPayload& payload) {
  if (payload.env) {
    for (const auto& [key, value] : *payload.env) {
      if (value) {
        config.env[key] = *value;
      } else {
        config.env.erase(key);
      }
    }
  }
  if (payload.sleep_after) config.sleep_after = payload.sleep_after;
  if (payload.keep_alive) config.keep_alive = *payload.keep_alive;
}

Config config_of(const CreateInput& input) {
  Config config;
  apply_configured(config, {std::nullopt, input.sleep_after, input.keep_alive});
  if (input.env) config.env = *input.env;
  return config;
}

void evolve_created(State& state) {
  const auto* pending = std::get_if<Pending>(&state.life);
  if (pending == nullptr) return;
  Record record = pending->record;
  Config config = config_of(record.input);
  state.life = Live{std::move(record), std::move(config), std::nullopt, Down{}};
}

void evolve_destroyed(State& state) {
  const Record* record = std::visit(Overloaded{
                                        [](const Unborn&) -> const Record* { return nullptr; },
                                        [](const Destroyed&) -> const Record* { return nullptr; },
                                        [](const auto& life) -> const Record* { return &life.record; },
                                    },
                                    state.life);
  if (record == nullptr) return;
  // The record lies inside the variant that is about to be replaced.
  Record kept = *record;
  state.life = Destroyed{std::move(kept)};
}

}  // namespace

State evolve(State state, std::string_view name, const Payload& payload) {
  if (name == "created") {
    evolve_created(state);
  } else if (name == "destroyed") {
    evolve_destroyed(state);
  } else if (name == "stopped") {
    auto* live = std::get_if<Live>(&state.life);
    if (live != nullptr) live->container = Down{};
  } else if (name == "started") {
    auto* live = std::get_if<Live>(&state.life);
    if (live != nullptr && std::holds_alternative<Down>(live->container)) {
      live->container = Fresh{++state.incarnation};
    }
  } else if (name == "configured") {
    auto* live = std::get_if<Live>(&state.life);
    const auto* change = std::get_if<ConfiguredPayload>(&payload);
    if (live != nullptr && change != nullptr) {
      apply_configured(live->config, *change);
      ++live->config.version;
    }
  }
  return state;
}

}  // namespace sandboxes::lifecycle
