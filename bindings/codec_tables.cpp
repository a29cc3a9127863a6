// The tables as JavaScript, the docs and the generators read them.
#include <array>

#include "codec.hpp"
#include "sandboxes/error.hpp"
#include "sandboxes/instance_types.hpp"
#include "sandboxes/limits.hpp"

namespace sandboxes::bindings {

namespace {

Json row_json(const InstanceTypeRow& row) {
  Json json = Json::object();
  json["name"] = row.name;
  json["vcpu"] = static_cast<double>(row.vcpu_sixteenths) / 16.0;
  json["vcpuSixteenths"] = row.vcpu_sixteenths;
  json["memoryMib"] = row.memory_mib;
  json["diskMb"] = row.disk_mb;
  json["diskGb"] = row.disk_mb / 1000;
  json["binding"] = row.binding;
  json["className"] = row.class_name;
  json["isDefault"] = row.type == default_instance_type;
  json["maxInstances"] = Json{{"dev", row.max_dev}, {"preview", row.max_preview}, {"prd", row.max_prd}};
  return json;
}

Result<Output> instance_types_table(const CallInput&) {
  Json rows = Json::array();
  for (const InstanceTypeRow& row : instance_types) rows.push_back(row_json(row));
  return Output{std::move(rows)};
}

Result<Output> limits_table(const CallInput&) {
  Json json = Json::object();
  json["inputBytes"] = kMaxInputBytes;
  json["nesting"] = kMaxNesting;
  json["nameBytes"] = kMaxNameBytes;
  json["projectIdBytes"] = kMaxProjectIdBytes;
  json["eventBytes"] = kMaxEventBytes;
  json["templateBodyBytes"] = kMaxTemplateBodyBytes;
  json["snapshotTtlSeconds"] = kSnapshotTtlSeconds;
  return Output{std::move(json)};
}

Result<Output> errors_table(const CallInput&) {
  Json rows = Json::array();
  for (const ErrorInfo& info : error_catalogue()) {
    rows.push_back(Json{{"code", info.code},
                        {"status", info.status},
                        {"retryable", info.retryable},
                        {"meaning", info.meaning}});
  }
  return Output{std::move(rows)};
}

constexpr std::array kTablesFunctions{
    FunctionEntry{"instanceTypes", instance_types_table},
    FunctionEntry{"limits", limits_table},
    FunctionEntry{"errorCatalogue", errors_table},
};

}  // namespace

std::span<const FunctionEntry> table_functions() {
  return kTablesFunctions;
}

}  // namespace sandboxes::bindings
