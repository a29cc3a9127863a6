#include "codec.hpp"

#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes::bindings {

namespace {

using simdjson::dom::element_type;

/// Absent and null are one thing for the optional forms.
std::optional<Input> find_present(Input object, std::string_view key) {
  const auto value = find(object, key);
  return value && !value->is_null() ? value : std::nullopt;
}

std::optional<std::string_view> as_string(Input value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? std::optional(text) : std::nullopt;
}

Result<std::vector<Input>> as_array(Input value, std::string_view key) {
  simdjson::dom::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS)
    return tl::unexpected(wrong_type(key, value, "an array"));
  std::vector<Input> items;
  for (const Input item : array) items.push_back(item);
  return items;
}

Result<std::vector<std::string_view>> as_strings(Input value, std::string_view key) {
  const auto items = as_array(value, key);
  if (!items) return propagate(items);
  std::vector<std::string_view> strings;
  for (const Input item : *items) {
    const auto text = as_string(item);
    if (!text) return tl::unexpected(wrong_type(key, item, "an array of strings"));
    strings.push_back(*text);
  }
  return strings;
}

template <class T, class Read>
Result<std::optional<T>> optional(Input object, std::string_view key, Read read) {
  if (!find_present(object, key)) return std::optional<T>();
  auto value = read(object, key);
  if (!value) return propagate(value);
  return std::optional<T>(std::move(*value));
}

std::string_view reason_of(simdjson::error_code code) {
  switch (code) {
    case simdjson::UTF8_ERROR:
      return "it is not valid UTF-8";
    case simdjson::STRING_ERROR:
      return "a string has a bad escape or a lone surrogate";
    case simdjson::UNESCAPED_CHARS:
      return "a string has a control character that is not escaped";
    case simdjson::UNCLOSED_STRING:
      return "a string is not closed";
    case simdjson::EMPTY:
      return "it is empty";
    case simdjson::NUMBER_ERROR:
    case simdjson::BIGINT_ERROR:
      return "a number is malformed or too large";
    default:
      return "its structure is broken";
  }
}

}  // namespace

std::optional<Input> find(Input object, std::string_view key) {
  simdjson::dom::object fields;
  if (object.get_object().get(fields) != simdjson::SUCCESS) return std::nullopt;
  std::optional<Input> found;
  for (const auto field : fields) {
    if (field.key == key) found = field.value;
  }
  return found;
}

Result<Input> read_value(Input object, std::string_view key) {
  const auto value = find_present(object, key);
  if (!value) return tl::unexpected(wrong_type(key, find(object, key), "given"));
  return *value;
}

Result<Input> read_object(Input object, std::string_view key) {
  const auto value = find(object, key);
  if (!value || !value->is_object()) return tl::unexpected(wrong_type(key, value, "an object"));
  return *value;
}

Result<std::vector<Input>> read_array(Input object, std::string_view key) {
  const auto value = find(object, key);
  if (!value) return tl::unexpected(wrong_type(key, value, "an array"));
  return as_array(*value, key);
}

Result<std::string_view> read_string(Input object, std::string_view key) {
  const auto value = find(object, key);
  const auto text = value ? as_string(*value) : std::nullopt;
  if (!text) return tl::unexpected(wrong_type(key, value, "a string"));
  return *text;
}

Result<std::int64_t> read_int(Input object, std::string_view key) {
  const auto number = read_number(object, key);
  constexpr double kSafe = 9007199254740991.0;
  const bool whole = number && *number >= -kSafe && *number <= kSafe &&
                     static_cast<double>(static_cast<std::int64_t>(*number)) == *number;
  if (!whole) return tl::unexpected(wrong_type(key, find(object, key), "a whole number below 2^53"));
  return static_cast<std::int64_t>(*number);
}

Result<double> read_number(Input object, std::string_view key) {
  const auto value = find(object, key);
  double number = 0;
  if (!value || !value->is_number() || value->get_double().get(number) != simdjson::SUCCESS) {
    return tl::unexpected(wrong_type(key, value, "a number"));
  }
  return number;
}

Result<bool> read_bool(Input object, std::string_view key) {
  const auto value = find(object, key);
  bool flag = false;
  if (!value || value->get_bool().get(flag) != simdjson::SUCCESS) {
    return tl::unexpected(wrong_type(key, value, "true or false"));
  }
  return flag;
}

Result<std::vector<std::string_view>> read_strings(Input object, std::string_view key) {
  const auto value = find(object, key);
  if (!value) return tl::unexpected(wrong_type(key, value, "an array of strings"));
  return as_strings(*value, key);
}

Result<std::vector<std::pair<std::string_view, std::string_view>>> read_string_map(Input object,
                                                                                   std::string_view key) {
  const auto value = read_object(object, key);
  if (!value) return propagate(value);
  simdjson::dom::object fields;
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  if (value->get_object().get(fields) != simdjson::SUCCESS) return entries;
  for (const auto field : fields) {
    const auto text = as_string(field.value);
    if (!text)
      return tl::unexpected(
          wrong_type(std::string(key) + "." + std::string(field.key), field.value, "a string"));
    std::erase_if(entries, [&](const auto& entry) { return entry.first == field.key; });
    entries.emplace_back(field.key, *text);
  }
  return entries;
}

Result<std::vector<std::pair<std::string_view, std::string_view>>> read_pairs(Input object,
                                                                              std::string_view key) {
  constexpr std::string_view kAllowed = "an array of [name, value] pairs of strings";
  const auto items = read_array(object, key);
  if (!items) return tl::unexpected(wrong_type(key, find(object, key), kAllowed));
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (const Input item : *items) {
    const auto pair = as_strings(item, key);
    if (!pair || pair->size() != 2) return tl::unexpected(wrong_type(key, item, kAllowed));
    pairs.emplace_back((*pair)[0], (*pair)[1]);
  }
  return pairs;
}

Result<std::optional<Input>> read_optional_object(Input object, std::string_view key) {
  return optional<Input>(object, key, read_object);
}
Result<std::optional<std::vector<Input>>> read_optional_array(Input object, std::string_view key) {
  return optional<std::vector<Input>>(object, key, read_array);
}
Result<std::optional<std::string_view>> read_optional_string(Input object, std::string_view key) {
  return optional<std::string_view>(object, key, read_string);
}
Result<std::optional<std::int64_t>> read_optional_int(Input object, std::string_view key) {
  return optional<std::int64_t>(object, key, read_int);
}
Result<std::optional<double>> read_optional_number(Input object, std::string_view key) {
  return optional<double>(object, key, read_number);
}
Result<std::optional<bool>> read_optional_bool(Input object, std::string_view key) {
  return optional<bool>(object, key, read_bool);
}
Result<std::optional<std::vector<std::string_view>>> read_optional_strings(Input object,
                                                                           std::string_view key) {
  return optional<std::vector<std::string_view>>(object, key, read_strings);
}

std::string type_name(std::optional<Input> value) {
  if (!value) return "absent";
  switch (value->type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "the string " + in_quotes(as_string(*value).value_or(""));
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      return "the number " + print(to_json(*value));
  }
  return "unknown";
}

Error wrong_type(std::string_view field, std::optional<Input> got, std::string_view allowed) {
  return InvalidInput{std::string(field), type_name(got), std::string(allowed)};
}

Json to_json(Input value) {
  switch (value.type()) {
    case element_type::ARRAY: {
      Json array = Json::array();
      const simdjson::dom::array items = value.get_array().value_unsafe();
      for (const Input item : items) array.push_back(to_json(item));
      return array;
    }
    case element_type::OBJECT: {
      Json object = Json::object();
      const simdjson::dom::object fields = value.get_object().value_unsafe();
      for (const auto field : fields) object[std::string(field.key)] = to_json(field.value);
      return object;
    }
    case element_type::STRING:
      return Json(as_string(value).value_or(""));
    case element_type::BOOL:
      return Json(value.get_bool().value_unsafe());
    case element_type::INT64:
      return Json(value.get_int64().value_unsafe());
    case element_type::UINT64:
      return Json(value.get_uint64().value_unsafe());
    case element_type::DOUBLE:
      return Json(value.get_double().value_unsafe());
    case element_type::NULL_VALUE:
      return Json(nullptr);
  }
  return Json(nullptr);
}

Result<Input> parse_padded(simdjson::dom::parser& parser, std::string_view bytes, std::string_view what) {
  if (bytes.size() > static_cast<std::size_t>(kMaxInputBytes)) {
    return fail(InputTooLarge{std::string(what), static_cast<std::int64_t>(bytes.size()), kMaxInputBytes});
  }
  constexpr std::size_t kSmallest = 4096;
  auto error = simdjson::SUCCESS;
  if (parser.capacity() < bytes.size() || parser.max_depth() != kMaxNesting) {
    // simdjson answers DEPTH_ERROR when the depth reaches its maximum, so one more keeps the limit inclusive.
    error = parser.allocate(bytes.size() < kSmallest ? kSmallest : bytes.size(), kMaxNesting);
  }
  Input element;
  if (error == simdjson::SUCCESS) error = parser.parse(bytes.data(), bytes.size(), false).get(element);
  switch (error) {
    case simdjson::SUCCESS:
      return element;
    case simdjson::DEPTH_ERROR:
      return fail(NestingTooDeep{std::string(what), kMaxNesting});
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY:
      return fail(OutOfMemory{std::string(what)});
    default:
      return fail(InvalidJson{std::string(what), std::string(reason_of(error))});
  }
}

}  // namespace sandboxes::bindings
