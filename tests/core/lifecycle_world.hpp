#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sandboxes/lifecycle.hpp"

/// A world for the lifecycle's decider: a platform that loses, delays and repeats what it reports, and an
/// object that may end between any two steps. Everything it does follows from one seed.
namespace model {

using namespace sandboxes;
using namespace sandboxes::lifecycle;

/// A command that waits to be asked again.
struct Waiting {
  Request request;
  std::int64_t since;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  /// One random step. Afterwards `broken()` says which promise does not hold.
  void step();
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] const std::vector<Event>& stream() const { return stream_; }
  [[nodiscard]] const State& state() const { return state_; }

 private:
  std::size_t pick(std::size_t size) { return size == 0 ? 0 : random_() % size; }
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  [[nodiscard]] Context context() const { return {now_, "basic", running_, std::nullopt}; }
  void expect(bool holds, const char* promise) {
    if (!holds && broken_.empty()) broken_ = promise;
  }

  Request random_request();
  void ask(const Request& request, std::optional<std::int64_t> since);
  void note_snapshots(const Signal& signal);
  void acknowledge(const Request& request, std::optional<std::int64_t> since);
  void tell(const Signal& signal);
  void commit(Decision decision);
  void expect_same_after_load();
  void start_effect(const Effect& effect);

  void perform_effect();
  Signal do_boot(const Boot& effect);
  Signal do_restore(const Restore& effect);
  Signal do_snapshot(const TakeSnapshot& effect);
  Signal do_tear_down(const TearDown& effect);
  void deliver(Signal signal);
  void deliver_late();
  void flush_outbox();
  void append(const Event& event);
  void end_object();
  void end_container();
  void spurious();
  void check();
  [[nodiscard]] bool stream_says_running() const;
  [[nodiscard]] bool on_stream(std::string_view name) const;

  std::mt19937_64 random_;
  std::string broken_;
  std::int64_t now_ = 1'000;

  State state_ = initial_state();  ///< of the object, lost when it ends
  State stored_ = initial_state();
  std::vector<Effect> effects_;  ///< begun and not done
  std::vector<Waiting> waiting_;
  std::deque<Signal> late_;

  std::vector<Event> stream_;
  std::set<std::string> keys_;

  bool running_ = false;
  std::int64_t container_ = 0;      ///< the incarnation that the running container was booted for
  std::set<std::int64_t> used_;     ///< incarnations in which a command ran
  std::set<std::string> finished_;  ///< snapshots that are whole
  std::set<std::int64_t> asked_;    ///< incarnations whose snapshot somebody waits for
  std::set<std::int64_t> kept_;     ///< incarnations whose snapshot the object knows of
  std::int64_t snapshots_ = 0;
  bool was_destroyed_ = false;
};

}  // namespace model
