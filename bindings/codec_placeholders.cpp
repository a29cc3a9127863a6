#include <array>

#include "codec.hpp"
#include "request_json.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/redirect.hpp"
#include "sandboxes/secret_field.hpp"

namespace sandboxes::bindings {

namespace {

Result<PlaceholderScan> scan_one(const RequestView& request) {
  auto found = scan_placeholders(request);
  if (!found) return found;
  if (auto one = require_one_secret(*found); !one) return propagate(one);
  return found;
}

Result<Output> scan(const CallInput& input) {
  const auto request = read_request(input.json, input.body_text());
  if (!request) return propagate(request);
  const auto found = scan_one(*request);
  if (!found) return propagate(found);
  return text_output("{\"references\":" + references_text(found->references) + "}");
}

/// The URL, then names and values of the headers. Answers with two texts a reference: the first letter of its
/// kind and the path, and a mark and the field, where it has one. No path and no field holds a NUL.
bool scan_fields(const FieldsInput& input, Answer& answer) {
  auto headers = read_header_fields(input.fields, 1);
  if (!headers) return false;
  const auto found = scan_one({"GET", input.fields[0], std::move(*headers), input.body});
  if (!found) {
    answer.set(propagate(found));
    return true;
  }
  answer.text.clear();
  for (const Reference& reference : found->references) {
    answer.text += reference.kind == ReferenceKind::secret ? 's' : 'p';
    answer.text += reference.path;
    answer.text += '\0';
    if (reference.field) {
      answer.text += '=';
      answer.text += *reference.field;
    }
    answer.text += '\0';
  }
  return true;
}

Result<Output> substitute(const CallInput& input) {
  const auto request = read_request(input.json, input.body_text());
  if (!request) return propagate(request);
  const auto values = read_string_map(input.json, "values");
  if (!values) return propagate(values);
  auto substituted = substitute_placeholders(*request, *values);
  if (!substituted) return propagate(substituted);
  Json json = Json::object();
  json["url"] = std::move(substituted->url);
  json["headers"] = headers_json(substituted->headers);
  return Output{std::move(json), std::move(substituted->body)};
}

Result<Output> select_field(const CallInput& input) {
  const auto material = find(input.json, "material");
  if (!material) return tl::unexpected(wrong_type("material", material, "a string or an object"));
  const auto field = read_optional_string(input.json, "field");
  if (!field) return propagate(field);
  const auto selected = select_secret_field(*material, *field);
  if (!selected) return propagate(selected);
  return Output{Json(std::string(*selected))};
}

Result<Output> check_pin(const CallInput& input) {
  const auto origins = read_strings(input.json, "origins");
  if (!origins) return propagate(origins);
  const auto url = read_string(input.json, "url");
  if (!url) return propagate(url);
  if (auto pinned = check_secret_pin(*origins, *url); !pinned) return propagate(pinned);
  return Output{Json(nullptr)};
}

constexpr std::array kPlaceholdersFunctions{
    FunctionEntry{"scanPlaceholders", scan, scan_fields},
    FunctionEntry{"substitutePlaceholders", substitute},
    FunctionEntry{"selectSecretField", select_field},
    FunctionEntry{"checkSecretPin", check_pin},
};

}  // namespace

std::span<const FunctionEntry> placeholder_functions() {
  return kPlaceholdersFunctions;
}

}  // namespace sandboxes::bindings
