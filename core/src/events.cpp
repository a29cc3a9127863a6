#include "sandboxes/events.hpp"

#include <algorithm>
#include <string>

#include "sandboxes/identity.hpp"
#include "sandboxes/instance_types.hpp"
#include "sandboxes/limits.hpp"
#include "sandboxes/settings.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using simdjson::dom::element;
using simdjson::dom::object;

/// Empty when the value fits, else what it must be.
using Verdict = std::string;

std::optional<std::string_view> text_of(element value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? std::optional(text) : std::nullopt;
}

Verdict unless(bool fits, std::string_view allowed) {
  return fits ? Verdict() : "must be " + std::string(allowed);
}

Verdict check_path(element value, Result<void> (*check)(std::string_view), std::string_view allowed) {
  const auto text = text_of(value);
  if (!text) return "must be " + std::string(allowed);
  const auto checked = check(*text);
  return checked ? Verdict() : "is refused: " + describe(checked.error()).message;
}

Verdict check_instance_type(element value) {
  const auto text = text_of(value);
  return unless(text && parse_instance_type(*text), "one of the instance types");
}

Verdict check_config(element value) {
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) return "must be { \"instanceType\": … }";
  bool found = false;
  for (const auto field : fields) {
    if (field.key != "instanceType") return "has the unknown field " + in_quotes(field.key);
    if (!check_instance_type(field.value).empty()) return "must have one of the instance types";
    found = true;
  }
  return unless(found, "{ \"instanceType\": … }");
}

Verdict check_sleep_after(element value) {
  const auto text = text_of(value);
  double seconds = 0;
  const bool is_number = value.is_number() && value.get_double().get(seconds) == simdjson::SUCCESS;
  const bool fits =
      text ? validate_sleep_after(*text).has_value() : is_number && validate_sleep_after(seconds).has_value();
  return unless(fits, "a positive number of seconds, or digits and one of s, m, h");
}

Verdict check_env(element value, bool may_unset) {
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) return "must be an object of strings";
  for (const auto field : fields) {
    if (!is_env_key(field.key))
      return "has the key " + in_quotes(field.key) + ", which is not [A-Za-z_][A-Za-z0-9_]*";
    const auto text = text_of(field.value);
    const bool unset = may_unset && field.value.is_null();
    if (!text && !unset) return "must have strings for values; " + in_quotes(field.key) + " has none";
    if (text && text->find('\0') != std::string_view::npos) return "has a NUL in " + in_quotes(field.key);
  }
  return {};
}

bool is_whole_number(element value, std::int64_t lowest, std::int64_t highest) {
  std::int64_t number = 0;
  return value.get_int64().get(number) == simdjson::SUCCESS && number >= lowest && number <= highest;
}

Verdict check_counts(element value) {
  constexpr std::int64_t kMost = 9007199254740991;
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) return "must be an object of whole numbers";
  for (const auto field : fields) {
    if (!is_whole_number(field.value, 0, kMost)) return "must have whole numbers for values";
  }
  return {};
}

Verdict check_origins(element value) {
  simdjson::dom::array items;
  if (value.get_array().get(items) != simdjson::SUCCESS) return "must be an array of origins";
  for (const element item : items) {
    const auto text = text_of(item);
    if (!text || text->find("://") == std::string_view::npos)
      return "must have origins like https://api.example.com";
  }
  return {};
}

Verdict check_text(element value) {
  const auto text = text_of(value);
  return unless(text && !text->empty(), "a string that is not empty");
}

Verdict check_method(element value) {
  const auto text = text_of(value);
  const bool token =
      text && !text->empty() && text->size() <= 40 && std::all_of(text->begin(), text->end(), [](char c) {
        return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
      });
  return unless(token, "an HTTP method");
}

Verdict check_scheme(element value) {
  const auto text = text_of(value);
  return unless(text && (*text == "http" || *text == "https" || *text == "ws" || *text == "wss"),
                "http, https, ws or wss");
}

Verdict check_decision(element value) {
  const auto text = text_of(value);
  const bool known =
      text && std::find(decision_kinds.begin(), decision_kinds.end(), *text) != decision_kinds.end();
  return unless(known, "deny, forward, secret or aiGateway");
}

Verdict check_field(FieldKind kind, element value) {
  switch (kind) {
    case FieldKind::sandbox_path:
      return check_path(value, check_sandbox_path, "a sandbox path");
    case FieldKind::secret_path:
      return check_path(value, check_secret_path, "a secret path");
    case FieldKind::stream_path:
      return check_path(value, check_stream_path, "a stream path");
    case FieldKind::instance_type:
      return check_instance_type(value);
    case FieldKind::config:
      return check_config(value);
    case FieldKind::sleep_after:
      return check_sleep_after(value);
    case FieldKind::boolean:
      return unless(value.is_bool(), "true or false");
    case FieldKind::env:
      return check_env(value, false);
    case FieldKind::env_changes:
      return check_env(value, true);
    case FieldKind::text:
      return check_text(value);
    case FieldKind::http_method:
      return check_method(value);
    case FieldKind::http_scheme:
      return check_scheme(value);
    case FieldKind::port:
      return unless(is_whole_number(value, 1, 65535), "a port from 1 to 65535");
    case FieldKind::decision:
      return check_decision(value);
    case FieldKind::counts:
      return check_counts(value);
    case FieldKind::version:
      return unless(is_whole_number(value, 1, 9007199254740991), "a whole number from 1");
    case FieldKind::origins:
      return check_origins(value);
  }
  return "has an unknown kind";
}

}  // namespace

Result<const EventRow*> validate_event(std::string_view type, element payload, std::int64_t bytes) {
  const EventRow* row = find_event(type);
  if (row == nullptr) return fail(UnknownEventType{std::string(type)});
  if (bytes > kMaxEventBytes) return fail(EventTooLarge{std::string(type), bytes, kMaxEventBytes});
  object fields;
  if (payload.get_object().get(fields) != simdjson::SUCCESS) {
    return fail(InvalidEvent{std::string(type), "", "must be an object"});
  }
  std::vector<bool> present(row->fields.size(), false);
  for (const auto field : fields) {
    const auto known = std::find_if(row->fields.begin(), row->fields.end(),
                                    [&](const EventField& one) { return one.name == field.key; });
    if (known == row->fields.end()) {
      return fail(InvalidEvent{std::string(type), std::string(field.key), "is not a field of this type"});
    }
    Verdict verdict = check_field(known->kind, field.value);
    if (!verdict.empty())
      return fail(InvalidEvent{std::string(type), std::string(field.key), std::move(verdict)});
    present[static_cast<std::size_t>(known - row->fields.begin())] = true;
  }
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (row->fields[i].required && !present[i]) {
      return fail(InvalidEvent{std::string(type), std::string(row->fields[i].name), "is missing"});
    }
  }
  return row;
}

}  // namespace sandboxes
