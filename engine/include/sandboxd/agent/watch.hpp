#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandboxd/agent/app.hpp"

namespace sandboxd::agent {

struct WatchOptions {
  std::string path;
  bool recursive = true;
  std::vector<std::string> include;
  std::vector<std::string> exclude = {".git", "node_modules", ".DS_Store"};
  std::set<std::string> events = {"create", "modify", "delete", "move_from", "move_to"};

  /// Whether a change at `relative` is told.
  [[nodiscard]] bool wants(const std::string& relative, bool directory) const;
  [[nodiscard]] bool excluded(const std::string& relative) const;
  /// One text for each different set of options.
  [[nodiscard]] std::string key() const;
};

struct WatchEvent {
  std::string type;
  std::string path;
  bool directory = false;
};

/// Follows one directory (or file) with inotify.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(Runtime& runtime, WatchOptions options, UniqueFd fd);
  static Result<std::shared_ptr<Watch>> open(Runtime& runtime, WatchOptions options);

  /// Starts to read; until then events wait in the kernel.
  void start();
  /// Takes in what the kernel has for us now.
  void drain();
  [[nodiscard]] Notifier& changed() { return changed_; }
  [[nodiscard]] std::deque<WatchEvent>& events() { return events_; }
  /// How many events there were ever.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Why there will be no more events; empty while there may be.
  [[nodiscard]] const std::string& ended() const { return ended_; }
  [[nodiscard]] bool lost_events() { return std::exchange(lost_, false); }
  /// Only the count matters, no event is kept.
  void keep_count_only() { keep_events_ = false; }

 private:
  Result<void> add(const std::string& relative);
  void add_tree(const std::string& relative, bool tell);
  void handle(int descriptor, std::uint32_t mask, const std::string& name);
  void emit(const char* type, const std::string& relative, bool directory);
  [[nodiscard]] std::string absolute(const std::string& relative) const;

  WatchOptions options_;
  FdWatch fd_;
  Notifier changed_;
  std::unordered_map<int, std::string> directories_;
  std::set<std::string> told_;  ///< created before their directory was watched, so told already
  std::deque<WatchEvent> events_;
  std::uint64_t count_ = 0;
  std::string ended_;
  bool lost_ = false;
  bool keep_events_ = true;
};

/// The state behind checkChanges, kept between calls.
class Watches {
 public:
  explicit Watches(Runtime& runtime) : runtime_(runtime) {}

  struct Retained {
    std::string id;
    std::shared_ptr<Watch> watch;
    std::uint64_t used = 0;
  };
  /// The retained watch for these options; a new one when there is none.
  Task<Result<Retained*>> retain(const WatchOptions& options, bool& created);

 private:
  Runtime& runtime_;
  std::map<std::string, Retained> retained_;
  std::uint64_t clock_ = 0;
};

}  // namespace sandboxd::agent
