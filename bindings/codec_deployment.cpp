#include <array>
#include <string>
#include <utility>

#include "codec.hpp"
#include "sandboxes/deployment.hpp"

namespace sandboxes::bindings {

namespace {

std::vector<std::string> owned(const std::optional<std::vector<std::string_view>>& views) {
  if (!views) return {};
  return {views->begin(), views->end()};
}

Json write_resources(const Resources& resources) {
  return {{"memoryMib", resources.memory_mib},
          {"vcpuSixteenths", resources.vcpu_sixteenths},
          {"diskMb", resources.disk_mb}};
}

Result<Resources> read_quota(Input json) {
  Resources quota = default_account_quota;
  const auto given = read_optional_object(json, "quota");
  if (!given) return propagate(given);
  if (!*given) return quota;
  for (const auto& [key, amount] :
       {std::pair{"memoryMib", &quota.memory_mib}, std::pair{"vcpuSixteenths", &quota.vcpu_sixteenths},
        std::pair{"diskMb", &quota.disk_mb}}) {
    const auto value = read_optional_int(**given, key);
    if (!value) return propagate(value);
    if (*value) *amount = **value;
  }
  return quota;
}

Json write_share(const EnvironmentShare& share) {
  Json caps = Json::array();
  for (const InstanceCap& cap : share.caps) {
    caps.push_back(
        {{"instanceType", instance_type_row(cap.instance_type).name}, {"maxInstances", cap.max_instances}});
  }
  return {{"name", share.environment.name},
          {"caps", std::move(caps)},
          {"resources", write_resources(share.resources)}};
}

Result<Output> check_quota_call(const CallInput& input) {
  const auto quota = read_quota(input.json);
  if (!quota) return propagate(quota);
  const auto entries = read_array(input.json, "environments");
  if (!entries) return propagate(entries);
  std::vector<EnvironmentRequest> requests;
  for (const Input entry : *entries) {
    const auto name = read_string(entry, "name");
    if (!name) return propagate(name);
    auto types = read_optional_strings(entry, "instanceTypes");
    if (!types) return propagate(types);
    requests.push_back({*name, *std::move(types)});
  }
  const auto check = check_quota(requests, *quota);
  if (!check) return propagate(check);
  Json environments = Json::array();
  for (const EnvironmentShare& share : check->environments) environments.push_back(write_share(share));
  return Output{{{"environments", std::move(environments)},
                 {"total", write_resources(check->total)},
                 {"quota", write_resources(check->quota)},
                 {"exceeded", check->exceeded}}};
}

Result<Migration> read_migration(Input json) {
  Migration step;
  const auto tag = read_string(json, "tag");
  if (!tag) return propagate(tag);
  step.tag = *tag;
  for (const auto& [key, names] :
       {std::pair{"newClasses", &step.new_classes}, std::pair{"newSqliteClasses", &step.new_sqlite_classes},
        std::pair{"deletedClasses", &step.deleted_classes}}) {
    const auto list = read_optional_strings(json, key);
    if (!list) return propagate(list);
    *names = owned(*list);
  }
  const auto renamed = read_optional_array(json, "renamedClasses");
  if (!renamed) return propagate(renamed);
  if (!*renamed) return step;
  for (const Input one : **renamed) {
    const auto from = read_string(one, "from");
    if (!from) return propagate(from);
    const auto to = read_string(one, "to");
    if (!to) return propagate(to);
    step.renamed_classes.push_back({std::string(*from), std::string(*to)});
  }
  return step;
}

Json write_migration(const Migration& step) {
  Json renamed = Json::array();
  for (const RenamedClass& one : step.renamed_classes)
    renamed.push_back({{"from", one.from}, {"to", one.to}});
  return {{"tag", step.tag},
          {"newClasses", step.new_classes},
          {"newSqliteClasses", step.new_sqlite_classes},
          {"renamedClasses", std::move(renamed)},
          {"deletedClasses", step.deleted_classes}};
}

Result<Output> plan_migrations_call(const CallInput& input) {
  const auto entries = read_array(input.json, "applied");
  if (!entries) return propagate(entries);
  std::vector<Migration> steps;
  for (const Input entry : *entries) {
    auto step = read_migration(entry);
    if (!step) return propagate(step);
    steps.push_back(*std::move(step));
  }
  const auto classes = read_strings(input.json, "classes");
  if (!classes) return propagate(classes);
  const auto deletable = read_optional_strings(input.json, "deletable");
  if (!deletable) return propagate(deletable);
  auto next = next_migration(steps, owned(*classes), owned(*deletable));
  if (!next) return propagate(next);
  if (*next) steps.push_back(**std::move(next));
  Json written = Json::array();
  for (const Migration& step : steps) written.push_back(write_migration(step));
  return Output{{{"migrations", std::move(written)}}};
}

constexpr std::array functions{
    FunctionEntry{"checkQuota", check_quota_call},
    FunctionEntry{"planMigrations", plan_migrations_call},
};

}  // namespace

std::span<const FunctionEntry> deployment_functions() {
  return functions;
}

}  // namespace sandboxes::bindings
