#include <algorithm>

#include "sandboxes/deployment.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using Names = std::vector<std::string>;

bool contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What a Worker has after the steps so far, in the order in which its classes were made.
class LiveClasses {
 public:
  [[nodiscard]] std::optional<InvalidMigrations> apply(const Migration& step) {
    for (const RenamedClass& renamed : step.renamed_classes) {
      const auto found = std::find(names_.begin(), names_.end(), renamed.from);
      if (found == names_.end()) return unmade(step, renamed.from);
      *found = renamed.to;
    }
    for (const std::string& name : step.deleted_classes) {
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found == names_.end()) return unmade(step, name);
      names_.erase(found);
    }
    for (const Names* made : {&step.new_classes, &step.new_sqlite_classes}) {
      for (const std::string& name : *made) {
        if (contains(names_, name))
          return InvalidMigrations{step.tag, "it makes " + name + ", which exists already"};
        names_.push_back(name);
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] const Names& names() const { return names_; }

 private:
  static InvalidMigrations unmade(const Migration& step, const std::string& name) {
    return {step.tag, "it ends " + name + ", which no earlier tag makes"};
  }

  Names names_;
};

/// `v1`, `v2`, … and the first that is free, for a history that was tagged by other rules.
std::string free_tag(std::span<const Migration> applied) {
  for (std::size_t number = applied.size() + 1;; ++number) {
    std::string tag = "v" + std::to_string(number);
    const auto taken = [&](const Migration& step) { return step.tag == tag; };
    if (std::none_of(applied.begin(), applied.end(), taken)) return tag;
  }
}

}  // namespace

Result<std::optional<Migration>> next_migration(std::span<const Migration> applied,
                                                std::span<const std::string> classes,
                                                std::span<const std::string> deletable) {
  LiveClasses live;
  Names tags;
  for (const Migration& step : applied) {
    if (contains(tags, step.tag)) return fail(InvalidMigrations{step.tag, "its tag is used twice"});
    tags.push_back(step.tag);
    if (auto broken = live.apply(step)) return fail(*std::move(broken));
  }

  Migration next;
  std::vector<std::string_view> refused;
  for (const std::string& name : classes) {
    if (!contains(live.names(), name) && !contains(next.new_sqlite_classes, name))
      next.new_sqlite_classes.push_back(name);
  }
  for (const std::string& name : live.names()) {
    if (contains(classes, name)) continue;
    if (contains(deletable, name)) {
      next.deleted_classes.push_back(name);
    } else {
      refused.push_back(name);
    }
  }
  if (!refused.empty()) return fail(WouldDeleteClass{join(refused.data(), refused.size(), ", ")});
  if (next.new_sqlite_classes.empty() && next.deleted_classes.empty()) return std::nullopt;
  next.tag = free_tag(applied);
  return next;
}

}  // namespace sandboxes
