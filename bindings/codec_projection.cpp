#include <algorithm>
#include <array>

#include "codec.hpp"
#include "sandboxes/projection.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

namespace {

std::string env_text(const ProjectionEnv& env) {
  std::string out = "{";
  for (const auto& [key, value] : env) {
    if (out.size() > 1) out += ',';
    append_string(out, key);
    out += ':';
    append_string(out, value);
  }
  return out + '}';
}

std::string sleep_after_text(const std::optional<SleepAfterValue>& value) {
  return value ? print(std::visit([](const auto& one) { return Json(one); }, *value)) : "null";
}

std::string birth_certificate_text(const std::optional<std::string>& instance_type) {
  if (!instance_type) return "null";
  ObjectText config;
  config.string("instanceType", *instance_type);
  return "{\"config\":" + config.take() + "}";
}

std::string state_text(const ProjectionState& state) {
  ObjectText text;
  text.raw("birthCertificate", birth_certificate_text(state.instance_type));
  if (state.status) {
    text.string("status", status_name(*state.status));
  } else {
    text.raw("status", "null");
  }
  text.boolean("running", state.running);
  text.optional_string("instanceType", state.instance_type);
  text.optional_string("lastBackupId", state.last_backup_id);
  text.raw("env", env_text(state.env));
  text.raw("sleepAfter", sleep_after_text(state.sleep_after));
  text.boolean("keepAlive", state.keep_alive);
  text.raw("offset", std::to_string(state.offset));
  if (!state.missing.empty()) text.raw("missing", print(Json(state.missing)));
  return text.take();
}

Result<void> read_missing(Input object, ProjectionState& state) {
  constexpr std::string_view kAllowed = "pairs of whole numbers below \"offset\"";
  const auto ranges = read_optional_array(object, "missing");
  if (!ranges) return propagate(ranges);
  if (!*ranges) return {};
  for (const Input range : **ranges) {
    simdjson::dom::array pair;
    std::int64_t first = 0;
    std::int64_t last = 0;
    const bool reads = range.get_array().get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
                       pair.at(0).get_int64().get(first) == simdjson::SUCCESS &&
                       pair.at(1).get_int64().get(last) == simdjson::SUCCESS;
    if (!reads || first < 1 || last < first || last >= state.offset) {
      return tl::unexpected(wrong_type("missing", range, kAllowed));
    }
    state.missing.emplace_back(first, last);
  }
  return {};
}

Result<void> read_sleep_after(Input object, ProjectionState& state) {
  const auto value = find(object, "sleepAfter");
  if (!value || value->is_null()) return {};
  if (value->is_string()) {
    state.sleep_after = std::string(value->get_string().value_unsafe());
    return {};
  }
  const auto seconds = read_number(object, "sleepAfter");
  if (!seconds) return tl::unexpected(wrong_type("sleepAfter", value, "a number, a string or null"));
  state.sleep_after = *seconds;
  return {};
}

/// A state that came from `state_json`, perhaps of an older build: what is absent is as in an empty one.
Result<ProjectionState> read_state(Input object) {
  ProjectionState state;
  const auto offset = read_optional_int(object, "offset");
  if (!offset) return propagate(offset);
  state.offset = offset->value_or(0);
  if (state.offset < 0)
    return tl::unexpected(wrong_type("offset", find(object, "offset"), "a whole number from 0"));
  const auto status = read_optional_string(object, "status");
  if (!status) return propagate(status);
  if (*status) {
    state.status = parse_status(**status);
    if (!state.status) {
      return tl::unexpected(
          wrong_type("status", find(object, "status"), "created, running, stopped, destroyed or null"));
    }
  }
  const auto running = read_optional_bool(object, "running");
  const auto keep_alive = read_optional_bool(object, "keepAlive");
  if (!running) return propagate(running);
  if (!keep_alive) return propagate(keep_alive);
  state.running = running->value_or(false);
  state.keep_alive = keep_alive->value_or(false);
  const auto instance_type = read_optional_string(object, "instanceType");
  const auto backup = read_optional_string(object, "lastBackupId");
  if (!instance_type) return propagate(instance_type);
  if (!backup) return propagate(backup);
  if (*instance_type) state.instance_type = std::string(**instance_type);
  if (*backup) state.last_backup_id = std::string(**backup);
  if (find(object, "env")) {
    const auto env = read_string_map(object, "env");
    if (!env) return propagate(env);
    for (const auto& [key, value] : *env) state.env.insert_or_assign(std::string(key), std::string(value));
  }
  if (const auto read = read_sleep_after(object, state); !read) return propagate(read);
  if (const auto read = read_missing(object, state); !read) return propagate(read);
  return state;
}

Result<ProjectionState> read_optional_state(Input object) {
  const auto given = read_optional_object(object, "state");
  if (!given) return propagate(given);
  return *given ? read_state(**given) : ProjectionState();
}

/// The events of a call: the bytes beside it, a JSON array, or `events` among the arguments.
Result<void> fold_call(const CallInput& input, ProjectionState& state) {
  std::optional<Input> events = find(input.json, "events");
  if (input.has_body) {
    if (fold_quickly(state, input.body_text())) return {};
    const auto parsed = parse_padded(input.session.body_parser, input.body_text(), "events");
    if (!parsed) return propagate(parsed);
    events = *parsed;
  }
  simdjson::dom::array array;
  if (!events || events->get_array().get(array) != simdjson::SUCCESS) {
    return tl::unexpected(wrong_type("events", events, "an array of events"));
  }
  return fold(state, array);
}

Result<Output> fold_projection(const CallInput& input) {
  auto state = read_optional_state(input.json);
  if (!state) return propagate(state);
  if (const auto folded = fold_call(input, *state); !folded) return propagate(folded);
  return text_output(state_text(*state));
}

Result<Output> create(const CallInput& input) {
  auto state = read_optional_state(input.json);
  if (!state) return propagate(state);
  return Output{Json(input.session.projections.add(std::move(*state)))};
}

Result<ProjectionState*> handle_of(const CallInput& input) {
  const auto handle = read_int(input.json, "handle");
  if (!handle) return propagate(handle);
  return input.session.projections.get(*handle);
}

Result<Output> apply(const CallInput& input) {
  const auto state = handle_of(input);
  if (!state) return propagate(state);
  if (const auto folded = fold_call(input, **state); !folded) return propagate(folded);
  return Output{Json((*state)->offset)};
}

Result<Output> read(const CallInput& input) {
  const auto state = handle_of(input);
  if (!state) return propagate(state);
  return text_output(state_text(**state));
}

Result<Output> release(const CallInput& input) {
  const auto handle = read_int(input.json, "handle");
  if (!handle) return propagate(handle);
  return Output{Json(input.session.projections.free(*handle))};
}

/// A mark for something, and the text; only the NUL after both where there is nothing.
void append_optional_field(std::string& out, const std::optional<std::string>& text) {
  if (text) {
    out += '=';
    out += *text;
  }
  out += '\0';
}

/// The state as texts with a NUL after each: instance type, status, id of the backup, `sleepAfter` as JSON,
/// whether it is kept alive, offset, then names and values of the environment. False for a state with holes
/// or a NUL of its own.
bool write_fields(const ProjectionState& state, std::string& out) {
  constexpr std::size_t kFixed = 6;
  if (!state.missing.empty()) return false;
  out.clear();
  append_optional_field(out, state.instance_type);
  if (state.status) out += status_name(*state.status);
  out += '\0';
  append_optional_field(out, state.last_backup_id);
  if (state.sleep_after) out += sleep_after_text(state.sleep_after);
  out += '\0';
  if (state.keep_alive) out += '1';
  out += '\0';
  out += std::to_string(state.offset);
  out += '\0';
  for (const auto& [key, value] : state.env) {
    out += key;
    out += '\0';
    out += value;
    out += '\0';
  }
  const auto nuls = std::count(out.begin(), out.end(), '\0');
  return static_cast<std::size_t>(nuls) == kFixed + 2 * state.env.size();
}

/// Bytes from the first event on.
bool fold_bytes(const FieldsInput& input, Answer& answer) {
  ProjectionState state;
  if (!input.has_body || !input.fields.empty() || !fold_quickly(state, input.body)) return false;
  if (!write_fields(state, answer.text)) answer.set(text_output(state_text(state)));
  return true;
}

bool apply_bytes(const FieldsInput& input, Answer& answer) {
  const auto state = input.session.projections.get(static_cast<std::int64_t>(input.handle));
  if (!input.has_body || !input.fields.empty() || !state || !fold_quickly(**state, input.body)) return false;
  answer.set(text_output(std::to_string((*state)->offset)));
  return true;
}

constexpr std::array kProjectionFunctions{
    FunctionEntry{"foldProjection", fold_projection, fold_bytes},
    FunctionEntry{"createProjection", create},
    FunctionEntry{"projectionApply", apply, apply_bytes},
    FunctionEntry{"projectionState", read},
    FunctionEntry{"projectionFree", release},
};

}  // namespace

std::span<const FunctionEntry> projection_functions() {
  return kProjectionFunctions;
}

}  // namespace sandboxes::bindings
