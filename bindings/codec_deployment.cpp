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

std::string resources_text(const Resources& resources) {
  ObjectText text;
  text.integer("memoryMib", resources.memory_mib);
  text.integer("vcpuSixteenths", resources.vcpu_sixteenths);
  text.integer("diskMb", resources.disk_mb);
  return text.take();
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

std::string share_text(const EnvironmentShare& share) {
  ArrayText caps;
  for (const InstanceCap& cap : share.caps) {
    ObjectText one;
    one.string("instanceType", instance_type_row(cap.instance_type).name);
    one.integer("maxInstances", cap.max_instances);
    caps.raw(one.take());
  }
  ObjectText text;
  text.string("name", share.environment.name);
  text.raw("caps", caps.take());
  text.raw("resources", resources_text(share.resources));
  return text.take();
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
  ArrayText environments;
  for (const EnvironmentShare& share : check->environments) environments.raw(share_text(share));
  ObjectText text;
  text.raw("environments", environments.take());
  text.raw("total", resources_text(check->total));
  text.raw("quota", resources_text(check->quota));
  text.raw("exceeded", print(Json(check->exceeded)));
  return text_output(text.take());
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

std::string migration_text(const Migration& step) {
  ArrayText renamed;
  for (const RenamedClass& one : step.renamed_classes) {
    ObjectText text;
    text.string("from", one.from);
    text.string("to", one.to);
    renamed.raw(text.take());
  }
  ObjectText text;
  text.string("tag", step.tag);
  text.strings("newClasses", step.new_classes);
  text.strings("newSqliteClasses", step.new_sqlite_classes);
  text.raw("renamedClasses", renamed.take());
  text.strings("deletedClasses", step.deleted_classes);
  return text.take();
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
  ArrayText written;
  for (const Migration& step : steps) written.raw(migration_text(step));
  return text_output("{\"migrations\":" + written.take() + "}");
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
