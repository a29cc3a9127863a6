#include <array>

#include "codec.hpp"
#include "sandboxes/secret.hpp"

namespace sandboxes::bindings {

namespace {

/// Every string value, however deep. The parser has bounded the depth.
void collect_strings(Input value, std::vector<std::string_view>& strings) {
  std::string_view text;
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get(text) == simdjson::SUCCESS) {
    strings.push_back(text);
  } else if (value.get(object) == simdjson::SUCCESS) {
    for (const auto field : object) collect_strings(field.value, strings);
  } else if (value.get(array) == simdjson::SUCCESS) {
    for (const auto element : array) collect_strings(element, strings);
  }
}

struct ReadMaterial {
  Input value;
  std::vector<std::string_view> strings;
};

Result<ReadMaterial> read_material(const CallInput& input) {
  const auto value = find(input.json, "material");
  if (!value || !(value->is_string() || value->is_object())) {
    return tl::unexpected<Error>(wrong_type("material", value, "a string or an object with string fields"));
  }
  ReadMaterial material{*value, {}};
  collect_strings(*value, material.strings);
  return material;
}

Result<Output> check_material(const CallInput& input) {
  const auto material = read_material(input);
  if (!material) return propagate(material);
  const auto bytes = static_cast<std::int64_t>(print(to_json(material->value)).size());
  const auto checked = check_secret_material(material->strings, bytes);
  if (!checked) return propagate(checked);
  return Output{Json(true)};
}

Result<Output> check_origins(const CallInput& input) {
  const auto origins = read_strings(input.json, "origins");
  if (!origins) return propagate(origins);
  auto checked = check_secret_origins(*origins);
  if (!checked) return propagate(checked);
  return Output{Json(std::move(*checked))};
}

Result<Output> patterns(const CallInput& input) {
  const auto material = read_material(input);
  if (!material) return propagate(material);
  return Output{Json(scrub_patterns(material->strings))};
}

constexpr std::array kSecretFunctions{
    FunctionEntry{"checkSecretMaterial", check_material},
    FunctionEntry{"checkSecretOrigins", check_origins},
    FunctionEntry{"scrubPatterns", patterns},
};

}  // namespace

std::span<const FunctionEntry> secret_functions() {
  return kSecretFunctions;
}

}  // namespace sandboxes::bindings
