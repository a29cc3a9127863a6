#include "sandboxes/deployment.hpp"

#include <algorithm>

#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr std::string_view kPreviewPrefix = "preview_";
constexpr std::size_t kPreviewDigits = 3;

bool is_preview_number(std::string_view digits) {
  return !digits.empty() && digits.size() <= kPreviewDigits && digits.front() != '0' &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return is_digit(c); });
}

void add(Resources& sum, const Resources& part, std::int64_t times) {
  sum.memory_mib += part.memory_mib * times;
  sum.vcpu_sixteenths += part.vcpu_sixteenths * times;
  sum.disk_mb += part.disk_mb * times;
}

Result<std::vector<InstanceType>> types_of(const EnvironmentRequest& request) {
  std::vector<InstanceType> types;
  if (!request.instance_types) {
    for (const InstanceTypeRow& row : instance_types) types.push_back(row.type);
    return types;
  }
  for (const std::string_view name : *request.instance_types) {
    const auto type = parse_instance_type(name);
    if (!type) return propagate(type);
    if (std::find(types.begin(), types.end(), *type) == types.end()) types.push_back(*type);
  }
  return types;
}

Result<EnvironmentShare> share_of(const EnvironmentRequest& request) {
  auto environment = parse_environment(request.name);
  if (!environment) return propagate(environment);
  const auto types = types_of(request);
  if (!types) return propagate(types);
  EnvironmentShare share{*std::move(environment), {}, {}};
  for (const InstanceType type : *types) {
    const InstanceTypeRow& row = instance_type_row(type);
    const std::int64_t cap = max_instances(row, share.environment.kind);
    share.caps.push_back({type, cap});
    add(share.resources, {row.memory_mib, row.vcpu_sixteenths, row.disk_mb}, cap);
  }
  return share;
}

}  // namespace

Result<Environment> parse_environment(std::string_view name) {
  if (name == "dev") return Environment{std::string(name), EnvironmentKind::dev};
  if (name == "prd") return Environment{std::string(name), EnvironmentKind::prd};
  if (name.starts_with(kPreviewPrefix) && is_preview_number(name.substr(kPreviewPrefix.size()))) {
    return Environment{std::string(name), EnvironmentKind::preview};
  }
  return fail(InvalidEnvironment{std::string(name)});
}

Result<QuotaCheck> check_quota(std::span<const EnvironmentRequest> requests, const Resources& quota) {
  QuotaCheck check{{}, {}, quota, {}};
  for (const EnvironmentRequest& request : requests) {
    const auto same = [&](const EnvironmentShare& share) { return share.environment.name == request.name; };
    if (std::any_of(check.environments.begin(), check.environments.end(), same)) continue;
    auto share = share_of(request);
    if (!share) return propagate(share);
    add(check.total, share->resources, 1);
    check.environments.push_back(*std::move(share));
  }
  if (check.total.memory_mib > quota.memory_mib) check.exceeded.push_back("memory");
  if (check.total.vcpu_sixteenths > quota.vcpu_sixteenths) check.exceeded.push_back("vcpu");
  if (check.total.disk_mb > quota.disk_mb) check.exceeded.push_back("disk");
  return check;
}

}  // namespace sandboxes
