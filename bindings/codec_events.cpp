#include <array>

#include "codec.hpp"
#include "sandboxes/events.hpp"
#include "sandboxes/instance_types.hpp"
#include "sandboxes/limits.hpp"

namespace sandboxes::bindings {

namespace {

Json instance_type_schema() {
  Json names = Json::array();
  for (const InstanceTypeRow& row : instance_types) names.push_back(row.name);
  return Json{{"enum", std::move(names)}};
}

Json closed_object(Json properties, Json required) {
  return Json{{"type", "object"},
              {"properties", std::move(properties)},
              {"required", std::move(required)},
              {"additionalProperties", false}};
}

Json whole_number(std::int64_t lowest) {
  return Json{{"type", "integer"}, {"minimum", lowest}};
}

Json text_schema(std::string_view pattern) {
  return Json{{"type", "string"}, {"pattern", pattern}};
}

Json env_schema(bool may_unset) {
  const Json value = may_unset ? Json{{"type", Json::array({"string", "null"})}} : Json{{"type", "string"}};
  return Json{{"type", "object"},
              {"propertyNames", Json{{"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}}},
              {"additionalProperties", value}};
}

Json sleep_after_schema() {
  return Json{{"anyOf", Json::array({Json{{"type", "number"}, {"exclusiveMinimum", 0}},
                                     text_schema("^[0-9]+[smh]$")})}};
}

Json field_schema(FieldKind kind) {
  switch (kind) {
    case FieldKind::sandbox_path:
      return text_schema("^/sandboxes/[^/]+$");
    case FieldKind::secret_path:
      return text_schema("^/secrets/[^%]+$");
    case FieldKind::stream_path:
      return text_schema("^/");
    case FieldKind::instance_type:
      return instance_type_schema();
    case FieldKind::config:
      return closed_object(Json{{"instanceType", instance_type_schema()}}, Json::array({"instanceType"}));
    case FieldKind::sleep_after:
      return sleep_after_schema();
    case FieldKind::boolean:
      return Json{{"type", "boolean"}};
    case FieldKind::env:
      return env_schema(false);
    case FieldKind::env_changes:
      return env_schema(true);
    case FieldKind::text:
      return Json{{"type", "string"}, {"minLength", 1}};
    case FieldKind::http_method:
      return text_schema("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}$");
    case FieldKind::http_scheme:
      return Json{{"enum", Json::array({"http", "https", "ws", "wss"})}};
    case FieldKind::port:
      return Json{{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}};
    case FieldKind::decision:
      return Json{{"enum", Json(decision_kinds)}};
    case FieldKind::counts:
      return Json{{"type", "object"}, {"additionalProperties", whole_number(0)}};
    case FieldKind::version:
      return whole_number(1);
    case FieldKind::origins:
      return Json{{"type", "array"}, {"items", text_schema("://")}};
  }
  return Json(nullptr);
}

Json row_schema(const EventRow& row) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const EventField& field : row.fields) {
    properties[std::string(field.name)] = field_schema(field.kind);
    if (field.required) required.push_back(field.name);
  }
  Json schema = closed_object(std::move(properties), std::move(required));
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = row.type;
  schema["description"] = row.description;
  return schema;
}

Result<Output> catalogue(const CallInput&) {
  Json rows = Json::array();
  for (const EventRow& row : event_rows()) {
    rows.push_back(Json{{"type", row.type},
                        {"stream", row.stream},
                        {"folded", row.folded},
                        {"description", row.description},
                        {"example", Json{{"type", row.type}, {"payload", Json::parse(row.example)}}},
                        {"schema", row_schema(row)}});
  }
  return Output{std::move(rows)};
}

Result<Output> validate(const CallInput& input) {
  const auto type = read_string(input.json, "type");
  if (!type) return propagate(type);
  const auto payload = find(input.json, "payload");
  if (!payload) return tl::unexpected(wrong_type("payload", payload, "an object"));
  Json event{{"type", *type}, {"payload", to_json(*payload)}};
  const auto valid = validate_event(*type, *payload, static_cast<std::int64_t>(print(event).size()));
  if (!valid) return propagate(valid);
  return Output{std::move(event)};
}

constexpr std::array kFunctions{
    FunctionEntry{"eventCatalogue", catalogue},
    FunctionEntry{"validateEvent", validate},
};

}  // namespace

std::span<const FunctionEntry> event_functions() {
  return kFunctions;
}

}  // namespace sandboxes::bindings
