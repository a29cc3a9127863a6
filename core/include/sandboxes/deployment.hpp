#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/instance_types.hpp"
#include "sandboxes/result.hpp"

namespace sandboxes {

/// A named deployment. Its kind picks the column of the instance table that caps it.
struct Environment {
  std::string name;
  EnvironmentKind kind;
};

/// `dev`, `prd`, or `preview_<number>` with a number from 1 to 999 and no leading zero.
[[nodiscard]] Result<Environment> parse_environment(std::string_view name);

/// What containers take of an account. CPU counts in sixteenths, the share of the smallest type, so sums are
/// exact.
struct Resources {
  std::int64_t memory_mib = 0;
  std::int64_t vcpu_sixteenths = 0;
  std::int64_t disk_mb = 0;
  bool operator==(const Resources&) const = default;
};

inline constexpr Resources default_account_quota{std::int64_t{400} * 1024, std::int64_t{100} * 16, 2'000'000};

/// One environment to count: every instance type, or only some of them.
struct EnvironmentRequest {
  std::string_view name;
  std::optional<std::vector<std::string_view>> instance_types;
};

struct InstanceCap {
  InstanceType instance_type;
  std::int64_t max_instances;
};

struct EnvironmentShare {
  Environment environment;
  std::vector<InstanceCap> caps;
  Resources resources;
};

/// What the environments named take together with every class at its cap, against the account's quota.
struct QuotaCheck {
  std::vector<EnvironmentShare> environments;
  Resources total;
  Resources quota;
  std::vector<std::string_view> exceeded;  ///< of "memory", "vcpu", "disk"
};

/// An environment named twice counts once.
[[nodiscard]] Result<QuotaCheck> check_quota(std::span<const EnvironmentRequest> requests,
                                             const Resources& quota);

struct RenamedClass {
  std::string from;
  std::string to;
};

/// One step of a Worker's Durable Object migrations, as wrangler writes them.
struct Migration {
  std::string tag;
  std::vector<std::string> new_classes;
  std::vector<std::string> new_sqlite_classes;
  std::vector<RenamedClass> renamed_classes;
  std::vector<std::string> deleted_classes;
};

/// The step that brings a Worker with `applied` to exactly `classes`, or none when it is there already.
/// Applied steps are never edited: a Worker skips the tags it knows, so an edit would be lost for one account
/// and applied for another. A class that `deletable` does not name is never deleted.
[[nodiscard]] Result<std::optional<Migration>> next_migration(std::span<const Migration> applied,
                                                              std::span<const std::string> classes,
                                                              std::span<const std::string> deletable);

}  // namespace sandboxes
