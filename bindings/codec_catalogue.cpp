#include <algorithm>
#include <array>
#include <utility>

#include "codec.hpp"
#include "sandboxes/catalogue.hpp"
#include "sandboxes/events.hpp"
#include "sandboxes/settings.hpp"

namespace sandboxes::bindings {

namespace {

constexpr std::array<std::string_view, 6> kInputFields{"path",      "instanceType", "sleepAfter",
                                                       "keepAlive", "env",          "allowRawSecrets"};

/// A field with a slip in its name would quietly create another sandbox than was meant.
Result<void> refuse_unknown_fields(Input object) {
  simdjson::dom::object fields;
  if (object.get_object().get(fields) != simdjson::SUCCESS) return {};
  for (const auto field : fields) {
    if (std::find(kInputFields.begin(), kInputFields.end(), field.key) == kInputFields.end()) {
      return tl::unexpected(wrong_type(field.key, field.value, "left out: create takes no such field"));
    }
  }
  return {};
}

Result<void> read_sleep_after(Input object, ClaimInput& input) {
  const auto value = find(object, "sleepAfter");
  if (!value) return {};
  if (value->is_string()) {
    const std::string_view text = value->get_string().value_unsafe();
    if (const auto checked = validate_sleep_after(text); !checked) return propagate(checked);
    input.sleep_after = std::string(text);
    return {};
  }
  const auto seconds = read_number(object, "sleepAfter");
  if (!seconds) return fail(InvalidSleepAfter{type_name(value)});
  if (const auto checked = validate_sleep_after(*seconds); !checked) return propagate(checked);
  input.sleep_after = *seconds;
  return {};
}

Result<void> read_env(Input object, ClaimInput& input) {
  if (const auto given = read_optional_object(object, "env"); !given) {
    return propagate(given);
  } else if (!*given) {
    return {};
  }
  const auto env = read_string_map(object, "env");
  if (!env) return propagate(env);
  for (const auto& [key, value] : *env) {
    if (!is_env_key(key)) return fail(InvalidEnv{std::string(key), "a key is [A-Za-z_][A-Za-z0-9_]*"});
    if (value.find('\0') != std::string_view::npos)
      return fail(InvalidEnv{std::string(key), "a value holds no NUL"});
    input.env.insert_or_assign(std::string(key), std::string(value));
  }
  return {};
}

Result<ClaimInput> read_input(Input object) {
  ClaimInput input;
  if (const auto known = refuse_unknown_fields(object); !known) return propagate(known);
  const auto type = read_optional_string(object, "instanceType");
  if (!type) return propagate(type);
  if (*type) {
    const auto parsed = parse_instance_type(**type);
    if (!parsed) return propagate(parsed);
    input.instance_type = *parsed;
  }
  if (const auto read = read_sleep_after(object, input); !read) return propagate(read);
  const auto keep_alive = read_optional_bool(object, "keepAlive");
  if (!keep_alive) return propagate(keep_alive);
  input.keep_alive = *keep_alive;
  if (const auto read = read_env(object, input); !read) return propagate(read);
  return input;
}

/// A claim is the payload of a `create-requested` event, or that whole event as the stream stores it.
Result<std::optional<Claim>> read_claim(Input object, std::string_view key) {
  const auto given = read_optional_object(object, key);
  if (!given) return propagate(given);
  if (!*given) return std::optional<Claim>();
  Input payload = **given;
  if (const auto inner = find(payload, "payload"); inner && inner->is_object()) payload = *inner;
  const auto path = read_string(payload, "path");
  if (!path) return propagate(path);
  auto input = read_input(payload);
  if (!input) return propagate(input);
  return std::optional(Claim{std::string(*path), std::move(*input)});
}

Result<std::optional<BirthRecord>> read_record(Input object) {
  const auto given = read_optional_object(object, "record");
  if (!given) return propagate(given);
  if (!*given) return std::optional<BirthRecord>();
  const auto pending = read_optional_bool(**given, "creationPending");
  const auto destroyed = read_optional_bool(**given, "destroyed");
  const auto created_at = read_optional_string(**given, "createdAt");
  if (!pending) return propagate(pending);
  if (!destroyed) return propagate(destroyed);
  if (!created_at) return propagate(created_at);
  BirthRecord record{pending->value_or(false), destroyed->value_or(false), std::nullopt};
  if (*created_at) record.created_at = std::string(**created_at);
  return std::optional(std::move(record));
}

std::string claim_event_text(std::string_view path, const ClaimInput& input) {
  ObjectText payload;
  payload.string("path", path);
  payload.string("instanceType", instance_type_row(input.instance_type).name);
  if (input.sleep_after) {
    payload.raw("sleepAfter",
                print(std::visit([](const auto& one) { return Json(one); }, *input.sleep_after)));
  }
  if (input.keep_alive) payload.boolean("keepAlive", *input.keep_alive);
  if (!input.env.empty()) payload.raw("env", print(Json(input.env)));
  ObjectText event;
  event.string("type", event_type_name(EventType::create_requested));
  event.string("idempotencyKey", claim_key(path));
  event.raw("payload", payload.take());
  return event.take();
}

std::string resolution_text(const ClaimResolution& resolution, const ClaimRequest& request) {
  ObjectText text;
  switch (resolution.outcome) {
    case ClaimOutcome::claim:
      text.string("outcome", "claim");
      text.raw("event", claim_event_text(request.path, request.input.value_or(ClaimInput())));
      break;
    case ClaimOutcome::use:
      text.string("outcome", "use");
      break;
    case ClaimOutcome::resume:
      text.string("outcome", "resume");
      if (resolution.created_at) text.string("createdAt", *resolution.created_at);
      break;
  }
  return text.take();
}

Result<Output> resolve(const CallInput& call) {
  const auto path = read_string(call.json, "path");
  if (!path) return propagate(path);
  auto claim = read_claim(call.json, "claim");
  if (!claim) return propagate(claim);
  auto record = read_record(call.json);
  if (!record) return propagate(record);
  const auto in_flight = read_optional_bool(call.json, "inFlight");
  if (!in_flight) return propagate(in_flight);
  ClaimRequest request{std::string(*path), std::move(*claim), std::move(*record), in_flight->value_or(false),
                       std::nullopt};
  const auto given = read_optional_object(call.json, "input");
  if (!given) return propagate(given);
  if (*given) {
    auto input = read_input(**given);
    if (!input) return propagate(input);
    request.input = std::move(*input);
  }
  const auto resolution = resolve_claim(request);
  if (!resolution) return propagate(resolution);
  return text_output(resolution_text(*resolution, request));
}

Result<Output> route(const CallInput& call) {
  const auto claim = read_claim(call.json, "claim");
  if (!claim) return propagate(claim);
  const auto path = read_optional_string(call.json, "path");
  if (!path) return propagate(path);
  const auto row = route_claim(*claim, path->value_or(""));
  if (!row) return propagate(row);
  ObjectText text;
  text.string("path", (*claim)->path);
  text.string("instanceType", (*row)->name);
  text.string("binding", (*row)->binding);
  text.string("className", (*row)->class_name);
  return text_output(text.take());
}

Result<Output> containers(const CallInput& call) {
  const auto mode = read_string(call.json, "engineMode");
  if (!mode) return propagate(mode);
  if (const auto checked = check_containers(*mode); !checked) return propagate(checked);
  return Output{Json(nullptr)};
}

constexpr std::array kCatalogueFunctions{
    FunctionEntry{"resolveClaim", resolve},
    FunctionEntry{"routeClaim", route},
    FunctionEntry{"assertContainers", containers},
};

}  // namespace

std::span<const FunctionEntry> catalogue_functions() {
  return kCatalogueFunctions;
}

}  // namespace sandboxes::bindings
