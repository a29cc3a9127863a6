#include "sandboxes/secret_field.hpp"

#include <string>

#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using simdjson::dom::element;

/// The last of equal keys, as JSON.parse keeps it.
std::optional<element> member(simdjson::dom::object object, std::string_view name) {
  std::optional<element> found;
  for (const auto field : object) {
    if (field.key == name) found = field.value;
  }
  return found;
}

/// An index as JavaScript would print it.
std::optional<element> item(simdjson::dom::array array, std::string_view name) {
  std::size_t index = 0;
  for (const element value : array) {
    if (name == std::to_string(index++)) return value;
  }
  return std::nullopt;
}

std::optional<element> step(element value, std::string_view name) {
  simdjson::dom::object object;
  if (value.get_object().get(object) == simdjson::SUCCESS) return member(object, name);
  simdjson::dom::array array;
  if (value.get_array().get(array) == simdjson::SUCCESS) return item(array, name);
  return std::nullopt;
}

std::string_view kind_of(element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::ARRAY:
      return "an array";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a boolean";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
    case simdjson::dom::element_type::DOUBLE:
      return "a number";
  }
  return "no string";
}

}  // namespace

Result<std::string_view> select_secret_field(element material, std::optional<std::string_view> field) {
  element selected = material;
  if (field) {
    std::string_view rest = *field;
    for (;;) {
      const std::size_t dot = rest.find('.');
      const auto next = step(selected, rest.substr(0, dot));
      if (!next) return fail(SecretReferenceFieldNotFound{std::string(*field)});
      selected = *next;
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
  }
  std::string_view text;
  if (selected.get_string().get(text) != simdjson::SUCCESS) {
    return fail(SecretMaterialNotAString{std::string(field.value_or("")), std::string(kind_of(selected))});
  }
  return text;
}

}  // namespace sandboxes
