#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sandboxes/lifecycle.hpp"

namespace sandboxes::lifecycle {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

/// One call of `decide` or `react` while it is being worked out.
struct Turn {
  State state;
  const Context& context;
  std::vector<Event> events;
  std::vector<Effect> effects;

  void effect(Effect one) { effects.push_back(std::move(one)); }
  /// A best-effort fact.
  void note(std::string_view name, Payload payload = NoPayload{});
  /// A durable event: kept in the outbox until it is on the stream.
  void record(std::string_view name, std::string key, Payload payload = NoPayload{});
};

using Reply = std::variant<Proceed, Wait>;

/// The living sandbox, or why there is none. What every request but create and destroy begins with.
[[nodiscard]] Result<Live*> living(Turn& turn, const Command& command);
/// A verb is over when its completion is on the stream.
[[nodiscard]] Result<Reply> once_recorded(Turn& turn, const Command& command, const std::string& path);
[[nodiscard]] Result<Reply> decide_create(Turn& turn, const Create& create, const Command& command);
[[nodiscard]] Result<Reply> decide_destroy(Turn& turn, const Destroy& destroy, const Command& command);

/// The incarnation that a container is in, 0 when it is down.
[[nodiscard]] std::int64_t incarnation_of(const Container& container);
[[nodiscard]] const std::string& path_of(const Record& record);

/// The container ended by itself: says so and why on the stream.
void container_died(Turn& turn, Live& live, bool announced, std::int64_t incarnation);
/// The container is gone, as was asked: says so on the stream if its start was announced.
void container_gone(Turn& turn, Live& live, bool announced, std::int64_t incarnation);
/// Corrects a state that says "up" when the platform says that nothing runs.
void notice_missed_stop(Turn& turn, Live& live);
/// From Fresh: restore if there is something to restore, then the environment.
void begin_set_up(Turn& turn, Live& live, std::int64_t incarnation);
void begin_env(Turn& turn, Live& live, std::int64_t incarnation);
void begin_tear_down(Turn& turn, Live& live, std::int64_t incarnation, bool announced, bool was_ready,
                     std::int64_t config_version);
/// Asks for a new life of the container.
/// Those who asked for the snapshot are told when they are asked for again; nobody waits for an idle one.
void lose_snapshot(Turn& turn, const Snapshotting& was, std::string reason);
std::int64_t begin_boot(Turn& turn, Live& live);

/// The decision of a finished turn; `before` tells whether anything is to be stored.
[[nodiscard]] Decision finish(Turn turn, const State& before, Reply reply);

[[nodiscard]] Error failure_error(const Failure& failure, const std::string& path);
/// `started:7`
[[nodiscard]] std::string numbered(std::string_view name, std::int64_t number);

}  // namespace sandboxes::lifecycle
