// The tables as JavaScript, the docs and the generators read them.
#include <array>

#include "codec.hpp"
#include "sandboxes/error.hpp"
#include "sandboxes/instance_types.hpp"
#include "sandboxes/limits.hpp"

namespace sandboxes::bindings {

namespace {

std::string row_text(const InstanceTypeRow& row) {
  ObjectText caps;
  caps.integer("dev", row.max_dev);
  caps.integer("preview", row.max_preview);
  caps.integer("prd", row.max_prd);
  ObjectText text;
  text.string("name", row.name);
  text.raw("vcpu", print(Json(static_cast<double>(row.vcpu_sixteenths) / 16.0)));
  text.integer("vcpuSixteenths", row.vcpu_sixteenths);
  text.integer("memoryMib", row.memory_mib);
  text.integer("diskMb", row.disk_mb);
  text.integer("diskGb", row.disk_mb / 1000);
  text.string("binding", row.binding);
  text.string("className", row.class_name);
  text.boolean("isDefault", row.type == default_instance_type);
  text.raw("maxInstances", caps.take());
  return text.take();
}

Result<Output> instance_types_table(const CallInput&) {
  ArrayText rows;
  for (const InstanceTypeRow& row : instance_types) rows.raw(row_text(row));
  return text_output(rows.take());
}

Result<Output> limits_table(const CallInput&) {
  ObjectText text;
  text.integer("inputBytes", kMaxInputBytes);
  text.integer("nesting", kMaxNesting);
  text.integer("nameBytes", kMaxNameBytes);
  text.integer("projectIdBytes", kMaxProjectIdBytes);
  text.integer("eventBytes", kMaxEventBytes);
  text.integer("templateBodyBytes", kMaxTemplateBodyBytes);
  text.integer("snapshotTtlSeconds", kSnapshotTtlSeconds);
  return text_output(text.take());
}

Result<Output> errors_table(const CallInput&) {
  ArrayText rows;
  for (const ErrorInfo& info : error_catalogue()) {
    ObjectText row;
    row.string("code", info.code);
    row.integer("status", info.status);
    row.boolean("retryable", info.retryable);
    row.string("meaning", info.meaning);
    rows.raw(row.take());
  }
  return text_output(rows.take());
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
