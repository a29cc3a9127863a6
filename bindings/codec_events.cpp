#include <array>
#include <string>

#include "codec.hpp"
#include "sandboxes/events.hpp"
#include "sandboxes/instance_types.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

namespace {

/// JSON Schema of one field, as text: built values would take a tenth of the whole wasm.
std::string_view field_schema(FieldKind kind) {
  switch (kind) {
    case FieldKind::sandbox_path:
      return R"({"type":"string","pattern":"^/sandboxes/[^/]+$"})";
    case FieldKind::secret_path:
      return R"({"type":"string","pattern":"^/secrets/[^%]+$"})";
    case FieldKind::stream_path:
      return R"({"type":"string","pattern":"^/"})";
    case FieldKind::instance_type:
      return R"({"$ref":"#/$defs/instanceType"})";
    case FieldKind::config:
      return R"({"type":"object","properties":{"instanceType":{"$ref":"#/$defs/instanceType"}},)"
             R"("required":["instanceType"],"additionalProperties":false})";
    case FieldKind::sleep_after:
      return R"({"anyOf":[{"type":"number","exclusiveMinimum":0},{"type":"string","pattern":"^[0-9]+[smh]$"}]})";
    case FieldKind::boolean:
      return R"({"type":"boolean"})";
    case FieldKind::env:
      return R"({"type":"object","propertyNames":{"pattern":"^[A-Za-z_][A-Za-z0-9_]*$"},)"
             R"("additionalProperties":{"type":"string"}})";
    case FieldKind::env_changes:
      return R"({"type":"object","propertyNames":{"pattern":"^[A-Za-z_][A-Za-z0-9_]*$"},)"
             R"("additionalProperties":{"type":["string","null"]}})";
    case FieldKind::text:
      return R"({"type":"string","minLength":1})";
    case FieldKind::http_method:
      return R"({"type":"string","pattern":"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}$"})";
    case FieldKind::http_scheme:
      return R"({"enum":["http","https","ws","wss"]})";
    case FieldKind::port:
      return R"({"type":"integer","minimum":1,"maximum":65535})";
    case FieldKind::decision:
      return R"({"enum":["deny","forward","secret","aiGateway"]})";
    case FieldKind::counts:
      return R"({"type":"object","additionalProperties":{"type":"integer","minimum":0}})";
    case FieldKind::version:
      return R"({"type":"integer","minimum":1})";
    case FieldKind::origins:
      return R"({"type":"array","items":{"type":"string","pattern":"://"}})";
  }
  return "true";
}

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::string instance_type_names() {
  std::string names;
  for (const InstanceTypeRow& row : instance_types) names += (names.empty() ? "" : ",") + in_quotes(row.name);
  return names;
}

/// The row's texts hold no quotation marks or escapes: a test parses them all.
std::string row_text(const EventRow& row) {
  std::string properties;
  std::string required;
  for (const EventField& field : row.fields) {
    properties += (properties.empty() ? "" : ",") + in_quotes(field.name) + ":";
    properties += field_schema(field.kind);
    if (field.required) required += (required.empty() ? "" : ",") + in_quotes(field.name);
  }
  const std::string type = in_quotes(row.type);
  const std::string description = in_quotes(row.description);
  std::string text = "{\"type\":" + type + ",\"stream\":" + in_quotes(row.stream);
  text += row.folded ? ",\"folded\":true" : ",\"folded\":false";
  text += ",\"description\":" + description + ",\"example\":{\"type\":" + type + ",\"payload\":";
  text += row.example;
  text += R"(},"schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","title":)" + type;
  text += ",\"description\":" + description + ",\"type\":\"object\",\"properties\":{" + properties;
  text += "},\"required\":[" + required + "],\"additionalProperties\":false";
  return text + ",\"$defs\":{\"instanceType\":{\"enum\":[" + instance_type_names() + "]}}}}";
}

Result<Output> catalogue(const CallInput& input) {
  std::string text = "[";
  for (const EventRow& row : event_rows()) text += (text.size() > 1 ? "," : "") + row_text(row);
  text += "]";
  const simdjson::padded_string padded(text);
  const auto rows = parse_padded(input.session.body_parser, std::string_view(padded), "event catalogue");
  if (!rows) return propagate(rows);
  return Output{to_json(*rows)};
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

constexpr std::array kEventsFunctions{
    FunctionEntry{"eventCatalogue", catalogue},
    FunctionEntry{"validateEvent", validate},
};

}  // namespace

std::span<const FunctionEntry> event_functions() {
  return kEventsFunctions;
}

}  // namespace sandboxes::bindings
