#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "sandboxes/lifecycle.hpp"

namespace lifecycle_driver {

using namespace sandboxes;
using namespace sandboxes::lifecycle;

inline constexpr std::int64_t kDay = 86'400'000;

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

inline std::string code(const Result<void>& refused) {
  REQUIRE_FALSE(refused.has_value());
  return std::string(describe(refused.error()).code);
}

}  // namespace lifecycle_driver
