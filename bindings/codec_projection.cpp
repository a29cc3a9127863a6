#include <array>

#include "codec.hpp"
#include "sandboxes/projection.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

namespace {

Json optional_text(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json sleep_after_json(const std::optional<SleepAfterValue>& value) {
  if (!value) return Json(nullptr);
  return std::visit([](const auto& one) { return Json(one); }, *value);
}

Json state_json(const ProjectionState& state) {
  Json json = Json::object();
  json["birthCertificate"] =
      state.instance_type ? Json{{"config", Json{{"instanceType", *state.instance_type}}}} : Json(nullptr);
  json["status"] = state.status ? Json(status_name(*state.status)) : Json(nullptr);
  json["running"] = state.running;
  json["instanceType"] = optional_text(state.instance_type);
  json["lastBackupId"] = optional_text(state.last_backup_id);
  json["env"] = Json(state.env);
  json["sleepAfter"] = sleep_after_json(state.sleep_after);
  json["keepAlive"] = state.keep_alive;
  json["offset"] = state.offset;
  if (!state.missing.empty()) json["missing"] = Json(state.missing);
  return json;
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
  return Output{state_json(*state)};
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
  return Output{state_json(**state)};
}

Result<Output> release(const CallInput& input) {
  const auto handle = read_int(input.json, "handle");
  if (!handle) return propagate(handle);
  return Output{Json(input.session.projections.free(*handle))};
}

constexpr std::array kProjectionFunctions{
    FunctionEntry{"foldProjection", fold_projection}, FunctionEntry{"createProjection", create},
    FunctionEntry{"projectionApply", apply},          FunctionEntry{"projectionState", read},
    FunctionEntry{"projectionFree", release},
};

}  // namespace

std::span<const FunctionEntry> projection_functions() {
  return kProjectionFunctions;
}

}  // namespace sandboxes::bindings
