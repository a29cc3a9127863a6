#include "lifecycle_world.hpp"

#include <algorithm>

namespace model {

namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

const Identity kIdentity{"prj_1", "/sandboxes/a"};

const Record* record_of(const Life& life) {
  return std::visit(Overloaded{
                        [](const Unborn&) -> const Record* { return nullptr; },
                        [](const auto& one) -> const Record* { return &one.record; },
                    },
                    life);
}

}  // namespace

Request World::random_request() {
  switch (pick(12)) {
    case 0:
      return Create{{"basic", std::nullopt, chance(50) ? std::optional(true) : std::nullopt, std::nullopt}};
    case 1:
      return Start{};
    case 2:
      return Sleep{};
    case 3:
      return Restart{};
    case 4:
      return SetEnvVars{{{"A", chance(50) ? std::optional<std::string>("1") : std::nullopt}}};
    case 5:
      return SetKeepAlive{chance(30)};
    case 6:
      return SetSleepAfter{5.0};
    case 7:
      return AssertCreated{};
    case 8:
      if (chance(5)) return Destroy{};
      return Create{{"basic", std::nullopt, std::nullopt, std::nullopt}};
    default:
      return Admit{"exec"};
  }
}

void World::ask(const Request& request, std::optional<std::int64_t> since) {
  const Command command{request, kIdentity, since};
  auto decision = decide(state_, command, context());
  const auto again = decide(state_, command, context());
  expect(decision.has_value() == again.has_value(), "decide is deterministic");
  if (!decision) return;
  expect(decision->state == again->state && decision->events == again->events &&
             decision->effects == again->effects && decision->reply == again->reply,
         "decide is deterministic");
  const auto reply = decision->reply;
  commit(std::move(*decision));
  if (const auto* wait = std::get_if<Wait>(&reply)) {
    waiting_.push_back({request, wait->since});
    const auto* live = std::get_if<Live>(&state_.life);
    const auto* taking = live == nullptr ? nullptr : std::get_if<Snapshotting>(&live->container);
    if (taking != nullptr && taking->reason != SleepReason::idle) asked_.insert(taking->incarnation);
  } else {
    acknowledge(request, since);
  }
}

/// What a caller was told must be so, and its completion on the stream.
void World::acknowledge(const Request& request, std::optional<std::int64_t> since) {
  if (std::holds_alternative<Create>(request))
    expect(on_stream("created"), "an acknowledged create is on the stream");
  if (std::holds_alternative<Destroy>(request)) {
    expect(on_stream("destroyed"), "an acknowledged destroy is on the stream");
    const bool ends = std::any_of(effects_.begin(), effects_.end(), [](const Effect& effect) {
      return std::holds_alternative<TearDown>(effect) || std::holds_alternative<Boot>(effect);
    });
    expect(!running_ || ends, "a destroyed sandbox has no container, or one that is being ended");
    return;
  }
  const bool wants_up = std::holds_alternative<Start>(request) || std::holds_alternative<Restart>(request);
  if (wants_up) expect(stream_says_running(), "an acknowledged start is on the stream");
  if ((std::holds_alternative<Sleep>(request) || std::holds_alternative<Restart>(request)) && since)
    expect(!asked_.contains(*since) || kept_.contains(*since), "what waited for a snapshot has one");
  if (std::holds_alternative<Sleep>(request)) {
    const auto* live = std::get_if<Live>(&state_.life);
    const bool later_life = since && state_.incarnation > *since;
    const bool down = live != nullptr && std::holds_alternative<Down>(live->container);
    expect(later_life || (down && !stream_says_running()), "an acknowledged sleep is on the stream");
  }
  if (std::holds_alternative<Admit>(request)) {
    const auto* live = std::get_if<Live>(&state_.life);
    const bool ready = live != nullptr && (std::holds_alternative<Ready>(live->container) ||
                                           std::holds_alternative<Snapshotting>(live->container));
    expect(ready, "a command runs only in a provisioned workspace");
    used_.insert(state_.incarnation);
    if (chance(70)) late_.push_back(WorkFinished{});
  }
}

void World::note_snapshots(const Signal& signal) {
  const auto* done = std::get_if<SnapshotDone>(&signal);
  const auto* live = std::get_if<Live>(&state_.life);
  const auto* taking = live == nullptr ? nullptr : std::get_if<Snapshotting>(&live->container);
  if (done != nullptr && taking != nullptr && taking->incarnation == done->incarnation)
    kept_.insert(done->incarnation);
}

void World::tell(const Signal& signal) {
  note_snapshots(signal);
  auto decision = react(state_, signal, context());
  const auto again = react(state_, signal, context());
  expect(decision.state == again.state && decision.effects == again.effects, "react is deterministic");
  commit(std::move(decision));
}

void World::commit(Decision decision) {
  state_ = std::move(decision.state);
  if (decision.persist) stored_ = state_;
  expect_same_after_load();
  for (const Effect& effect : decision.effects) start_effect(effect);
  for (const Event& event : decision.events) {
    if (!event.durable && chance(90)) append(event);
  }
}

/// What was not stored must not be missed.
void World::expect_same_after_load() {
  for (const bool running : {false, true}) {
    Context loading = context();
    loading.container_running = running;
    const auto loaded = react(stored_, ObjectLoaded{}, loading);
    const auto kept = react(state_, ObjectLoaded{}, loading);
    expect(loaded.state == kept.state && loaded.effects == kept.effects && loaded.events == kept.events,
           "an object that loads what was stored goes on as from what was");
  }
}

void World::start_effect(const Effect& effect) {
  if (const auto* restore = std::get_if<Restore>(&effect)) {
    expect(used_.count(restore->incarnation) == 0,
           "a restore never overwrites what a command may have written");
  }
  if (std::holds_alternative<TakeSnapshot>(effect)) {
    const auto* live = std::get_if<Live>(&state_.life);
    expect(live != nullptr && std::holds_alternative<Snapshotting>(live->container),
           "a snapshot is taken of a provisioned workspace only");
  }
  effects_.push_back(effect);
}

Signal World::do_boot(const Boot& effect) {
  if (chance(10)) return EffectFailed{effect.incarnation, "boot", "no instance", false};
  running_ = true;
  container_ = effect.incarnation;
  if (chance(95)) tell(ContainerStarted{});
  return BootDone{effect.incarnation};
}

Signal World::do_restore(const Restore& effect) {
  expect(finished_.count(effect.handle.id) == 1, "only a finished snapshot is restored");
  if (!running_ || chance(15)) return RestoreFailed{effect.incarnation, "no", chance(10), chance(20)};
  return RestoreDone{effect.incarnation};
}

Signal World::do_snapshot(const TakeSnapshot& effect) {
  if (!running_ || chance(20))
    return SnapshotFailed{effect.incarnation, "no", !effect.binding_only && chance(40)};
  const std::string id = "b-" + std::to_string(++snapshots_);
  finished_.insert(id);
  return SnapshotDone{effect.incarnation, id, now_, 1'000'000, "{}"};
}

Signal World::do_tear_down(const TearDown& effect) {
  if (chance(10)) return EffectFailed{effect.incarnation, "tearDown", "stuck", false};
  running_ = false;
  return TornDown{effect.incarnation};
}

void World::perform_effect() {
  if (effects_.empty()) return;
  const std::size_t at = pick(effects_.size());
  const Effect effect = effects_[at];
  effects_.erase(effects_.begin() + static_cast<std::ptrdiff_t>(at));
  const auto outcome = [&](const char* name, std::int64_t incarnation, Signal done) -> Signal {
    if (running_ && chance(90)) return done;
    return EffectFailed{incarnation, name, "interrupted", chance(70)};
  };
  const std::optional<Signal> signal =
      std::visit(Overloaded{
                     [&](const Boot& e) -> std::optional<Signal> { return do_boot(e); },
                     [&](const Restore& e) -> std::optional<Signal> { return do_restore(e); },
                     [&](const TakeSnapshot& e) -> std::optional<Signal> { return do_snapshot(e); },
                     [&](const TearDown& e) -> std::optional<Signal> { return do_tear_down(e); },
                     [&](const ApplyEnv& e) -> std::optional<Signal> {
                       return outcome("applyEnv", e.incarnation, EnvApplied{e.incarnation});
                     },
                     [&](const OpenSession& e) -> std::optional<Signal> {
                       return outcome("openSession", e.incarnation, SessionOpened{e.incarnation});
                     },
                     [&](const ConfigureGit& e) -> std::optional<Signal> {
                       return outcome("configureGit", e.incarnation, GitConfigured{e.incarnation});
                     },
                     [&](const ApplySettings&) -> std::optional<Signal> { return std::nullopt; },
                     [&](const AbortObject&) -> std::optional<Signal> { return std::nullopt; },
                 },
                 effect);
  if (signal) deliver(*signal);
}

/// Now, later, or twice.
void World::deliver(Signal signal) {
  if (chance(10)) late_.push_back(signal);
  tell(signal);
}

void World::deliver_late() {
  if (late_.empty()) return;
  const std::size_t at = pick(late_.size());
  const Signal signal = late_[at];
  if (chance(70)) late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(at));
  if (late_.size() > 40) late_.pop_front();
  tell(signal);
}

void World::append(const Event& event) {
  if (event.durable && !keys_.insert(event.key).second) return;
  stream_.push_back(event);
}

void World::flush_outbox() {
  if (state_.outbox.empty() || state_.outbox_status != OutboxStatus::appending) return;
  if (chance(10)) return tell(AppendFailed{"unreachable"});
  std::vector<std::string> keys;
  for (const Event& event : state_.outbox) {
    append(event);
    keys.push_back(event.key);
  }
  // The object may end after the stream has them and before it knows.
  if (chance(10)) return end_object();
  tell(EventsAppended{keys});
}

void World::end_object() {
  state_ = stored_;
  effects_.clear();
  waiting_.clear();
  asked_.clear();
  tell(ObjectLoaded{});
}

void World::end_container() {
  if (!running_) return;
  running_ = false;
  if (chance(50)) tell(ContainerStopped{});
  if (chance(30)) late_.push_back(ContainerStopped{});
}

void World::spurious() {
  switch (pick(4)) {
    case 0:
      if (running_) tell(ContainerStarted{});
      return;
    case 1:
      return tell(IdleExpired{});
    case 2:
      return tell(ContainerStopped{});
    default:
      now_ += chance(2) ? 2'000'000'000 : 10;
  }
}

void World::step() {
  switch (pick(14)) {
    case 0:
    case 1:
    case 2:
      ask(random_request(), std::nullopt);
      break;
    case 3:
    case 4:
    case 5:
      if (!waiting_.empty()) {
        const std::size_t at = pick(waiting_.size());
        const Waiting again = waiting_[at];
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
        ask(again.request, again.since);
      }
      break;
    case 6:
      deliver_late();
      break;
    case 7:
    case 8:
      flush_outbox();
      break;
    case 9:
      if (chance(25)) end_object();
      break;
    case 10:
      if (chance(25)) end_container();
      break;
    case 11:
      spurious();
      break;
    default:
      perform_effect();
  }
  if (waiting_.size() > 20) waiting_.erase(waiting_.begin());
  check();
}

bool World::on_stream(std::string_view name) const {
  return std::any_of(stream_.begin(), stream_.end(), [&](const Event& event) { return event.name == name; });
}

bool World::stream_says_running() const {
  bool running = false;
  for (const Event& event : stream_) {
    if (event.name == "started") running = true;
    if (event.name == "stopped" || event.name == "destroyed") running = false;
  }
  return running;
}

void World::check() {
  bool running = false;
  bool destroyed = false;
  std::size_t created = 0;
  for (const Event& event : stream_) {
    if (event.name == "created") ++created;
    if (event.name == "started") {
      expect(!running, "a start is followed by its stop before the next start");
      expect(!destroyed, "a destroyed name never starts again");
      running = true;
    }
    if (event.name == "stopped") {
      expect(running, "a stop follows a start");
      running = false;
    }
    if (event.name == "destroyed") {
      expect(!running, "a sandbox stops before it is destroyed");
      expect(!destroyed, "a sandbox is destroyed once");
      destroyed = true;
    }
  }
  expect(created <= 1, "a name is created once");
  const bool dead =
      std::holds_alternative<Destroyed>(state_.life) || std::holds_alternative<Destroying>(state_.life);
  expect(!was_destroyed_ || dead, "a destroyed name never comes back");
  was_destroyed_ = was_destroyed_ || std::holds_alternative<Destroyed>(stored_.life) ||
                   std::holds_alternative<Destroying>(stored_.life);
  if (const auto* record = record_of(state_.life))
    expect(record->identity == kIdentity, "an identity is write-once");
  if (const auto* live = std::get_if<Live>(&state_.life); live != nullptr && live->snapshot) {
    expect(finished_.count(live->snapshot->id) == 1, "the handle points to a finished snapshot");
  }
}

}  // namespace model
