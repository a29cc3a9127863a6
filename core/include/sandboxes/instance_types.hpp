#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

enum class InstanceType : std::uint8_t { lite, basic, standard_1, standard_2, standard_3, standard_4 };

/// What an environment is for; it picks the column of caps.
enum class EnvironmentKind : std::uint8_t { dev, preview, prd };

/// One row of Cloudflare's instance types, with our names for it. Wrangler's configuration, the Worker's
/// exports, routing and the docs are printed from these.
struct InstanceTypeRow {
  InstanceType type;
  std::string_view name;
  std::int64_t vcpu_sixteenths;  ///< the smallest type has 1/16
  std::int64_t memory_mib;
  std::int64_t disk_mb;
  std::string_view binding;
  std::string_view class_name;
  std::int64_t max_dev;
  std::int64_t max_preview;
  std::int64_t max_prd;
};

inline constexpr std::array<InstanceTypeRow, 6> instance_types{{
    {InstanceType::lite, "lite", 1, 256, 2000, "SANDBOX_LITE", "SandboxLiteDurableObject", 5, 3, 50},
    {InstanceType::basic, "basic", 4, 1024, 4000, "SANDBOX_BASIC", "SandboxBasicDurableObject", 5, 3, 50},
    {InstanceType::standard_1, "standard-1", 8, 4096, 8000, "SANDBOX_STANDARD_1",
     "SandboxStandard1DurableObject", 2, 2, 20},
    {InstanceType::standard_2, "standard-2", 16, 6144, 12000, "SANDBOX_STANDARD_2",
     "SandboxStandard2DurableObject", 2, 1, 10},
    {InstanceType::standard_3, "standard-3", 32, 8192, 16000, "SANDBOX_STANDARD_3",
     "SandboxStandard3DurableObject", 1, 1, 5},
    {InstanceType::standard_4, "standard-4", 64, 12288, 20000, "SANDBOX_STANDARD_4",
     "SandboxStandard4DurableObject", 1, 1, 5},
}};

inline constexpr InstanceType default_instance_type = InstanceType::basic;

namespace internal {

consteval bool rows_are_in_order() {
  for (std::size_t i = 0; i < instance_types.size(); ++i) {
    if (instance_types[i].type != static_cast<InstanceType>(i)) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (instance_types[i].name == instance_types[j].name ||
          instance_types[i].binding == instance_types[j].binding ||
          instance_types[i].class_name == instance_types[j].class_name) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace internal

static_assert(internal::rows_are_in_order(),
              "each row stands at the index of its type, and no name occurs twice");

[[nodiscard]] constexpr const InstanceTypeRow& instance_type_row(InstanceType type) {
  return instance_types[static_cast<std::size_t>(type)];
}

[[nodiscard]] constexpr std::int64_t max_instances(const InstanceTypeRow& row, EnvironmentKind kind) {
  switch (kind) {
    case EnvironmentKind::dev:
      return row.max_dev;
    case EnvironmentKind::preview:
      return row.max_preview;
    case EnvironmentKind::prd:
      return row.max_prd;
  }
  return 0;
}

/// Exactly one of the names of the table.
[[nodiscard]] Result<InstanceType> parse_instance_type(std::string_view name);

}  // namespace sandboxes
