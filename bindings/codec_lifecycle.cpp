#include <array>

#include "lifecycle_json.hpp"
#include "sandboxes/instance_types.hpp"
#include "sandboxes/settings.hpp"

namespace sandboxes::bindings {

using namespace lifecycle;

namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

/// A number of seconds or `10m`, as the validator of sleepAfter takes it.
std::optional<SleepAfter> read_sleep_after(Fields& fields) {
  auto value = fields.sleep_after("sleepAfter");
  if (!value) return value;
  const auto* text = std::get_if<std::string>(&*value);
  fields.keep(text != nullptr ? validate_sleep_after(std::string_view(*text))
                              : validate_sleep_after(std::get<double>(*value)));
  return value;
}

Result<Create> read_create(Fields& fields) {
  Create create;
  const auto input = fields.object("input");
  if (!input) return fields.done(std::move(create));
  Fields f(*input);
  create.input.instance_type = f.string("instanceType");
  f.keep(parse_instance_type(create.input.instance_type));
  create.input.sleep_after = read_sleep_after(f);
  create.input.keep_alive = f.optional_boolean("keepAlive");
  if (const auto env = f.optional_object("env")) create.input.env = f.env_map("env");
  create.allow_raw_secrets = f.flag("allowRawSecrets");
  return f.done(std::move(create));
}

Result<Request> read_request(Fields& f) {
  const std::string kind = f.string("kind");
  if (kind == "create") return f.done(Request{f.keep(read_create(f))});
  if (kind == "assertCreated") return f.done(Request{AssertCreated{}});
  if (kind == "start") return f.done(Request{Start{}});
  if (kind == "sleep") return f.done(Request{Sleep{}});
  if (kind == "restart") return f.done(Request{Restart{}});
  if (kind == "kill") return f.done(Request{Kill{}});
  if (kind == "destroy") return f.done(Request{Destroy{}});
  if (kind == "setEnvVars")
    return f.done(Request{SetEnvVars{f.env_changes("changes"), f.flag("allowRawSecrets")}});
  if (kind == "setKeepAlive") return f.done(Request{SetKeepAlive{f.boolean("keepAlive")}});
  if (kind == "admit") return f.done(Request{Admit{f.string("method")}});
  if (kind == "setSleepAfter") {
    const auto value = read_sleep_after(f);
    if (!value)
      f.refuse(wrong_type("sleepAfter", find(f.source(), "sleepAfter"), "a number of seconds or `10m`"));
    return f.done(Request{SetSleepAfter{value.value_or(SleepAfter{})}});
  }
  f.refuse(wrong_type("command.kind", find(f.source(), "kind"), "a command of the lifecycle"));
  return f.done(Request{AssertCreated{}});
}

Result<Command> read_command(Input object) {
  Fields fields(object);
  Command command{fields.keep(read_request(fields)), std::nullopt, fields.optional_integer("since")};
  if (const auto identity = fields.optional_object("identity")) {
    command.identity = fields.keep(read_lifecycle_identity(*identity));
  }
  return fields.done(std::move(command));
}

Result<SnapshotDone> read_snapshot_done(Fields& f) {
  return f.done(SnapshotDone{f.integer("incarnation"), f.string("id"), f.integer("createdAt"),
                             f.integer("ttlSeconds"), f.string("manifest")});
}

Result<Signal> read_answer(Fields& f, std::string_view kind) {
  const std::int64_t incarnation = f.integer("incarnation");
  if (kind == "bootDone") return f.done(Signal{BootDone{incarnation}});
  if (kind == "snapshotDone") return f.done(Signal{f.keep(read_snapshot_done(f))});
  if (kind == "snapshotFailed") {
    return f.done(Signal{SnapshotFailed{incarnation, f.string("error"), f.flag("presigned")}});
  }
  if (kind == "restoreDone") return f.done(Signal{RestoreDone{incarnation}});
  if (kind == "restoreFailed") {
    return f.done(
        Signal{RestoreFailed{incarnation, f.string("error"), f.flag("expired"), f.flag("presigned")}});
  }
  if (kind == "envApplied") return f.done(Signal{EnvApplied{incarnation}});
  if (kind == "sessionOpened") return f.done(Signal{SessionOpened{incarnation}});
  if (kind == "gitConfigured") return f.done(Signal{GitConfigured{incarnation}});
  if (kind == "tornDown") return f.done(Signal{TornDown{incarnation}});
  if (kind == "effectFailed") {
    return f.done(
        Signal{EffectFailed{incarnation, f.string("effect"), f.string("error"), f.flag("interrupted")}});
  }
  f.refuse(wrong_type("signal.kind", find(f.source(), "kind"), "a signal of the lifecycle"));
  return f.done(Signal{WorkFinished{}});
}

Result<Signal> read_signal(Input object) {
  Fields f(object);
  const std::string kind = f.string("kind");
  if (kind == "objectLoaded") return f.done(Signal{ObjectLoaded{}});
  if (kind == "containerStarted") return f.done(Signal{ContainerStarted{}});
  if (kind == "containerStopped") return f.done(Signal{ContainerStopped{}});
  if (kind == "idleExpired") return f.done(Signal{IdleExpired{}});
  if (kind == "workFinished") return f.done(Signal{WorkFinished{}});
  if (kind == "eventsAppended") return f.done(Signal{EventsAppended{f.strings("keys")}});
  if (kind == "appendFailed") return f.done(Signal{AppendFailed{f.string("error")}});
  return read_answer(f, kind);
}

Result<Context> read_context(Input object) {
  Fields fields(object);
  return fields.done(Context{fields.integer("now"), fields.string("instanceType"),
                             fields.boolean("containerRunning"), fields.optional_string("containerEnd")});
}

Json env_json(const EnvMap& env) {
  Json json = Json::object();
  for (const auto& [key, value] : env) json[key] = value;
  return json;
}

Json effect_json(const Effect& effect) {
  return std::visit(
      Overloaded{
          [](const Boot& e) {
            return Json{{"kind", "boot"}, {"incarnation", e.incarnation}};
          },
          [](const Restore& e) {
            return Json{{"kind", "restore"},
                        {"incarnation", e.incarnation},
                        {"handle", handle_json(e.handle)},
                        {"bindingOnly", e.binding_only}};
          },
          [](const ApplyEnv& e) {
            return Json{{"kind", "applyEnv"}, {"incarnation", e.incarnation}, {"env", env_json(e.env)}};
          },
          [](const OpenSession& e) {
            return Json{{"kind", "openSession"}, {"incarnation", e.incarnation}, {"delayMs", e.delay_ms}};
          },
          [](const ConfigureGit& e) {
            return Json{{"kind", "configureGit"}, {"incarnation", e.incarnation}};
          },
          [](const TakeSnapshot& e) {
            return Json{
                {"kind", "takeSnapshot"}, {"incarnation", e.incarnation}, {"bindingOnly", e.binding_only}};
          },
          [](const TearDown& e) {
            return Json{{"kind", "tearDown"}, {"incarnation", e.incarnation}};
          },
          [](const ApplySettings& e) {
            Json json{{"kind", "applySettings"}, {"keepAlive", e.keep_alive}};
            if (e.sleep_after) json["sleepAfter"] = sleep_after_json(*e.sleep_after);
            return json;
          },
          [](const AbortObject&) {
            return Json{{"kind", "abortObject"}};
          },
      },
      effect);
}

Json decision_json(const Decision& decision) {
  Json events = Json::array();
  for (const Event& event : decision.events) {
    Json json{{"type", std::string(kEventTypePrefix) + event.name},
              {"payload", payload_json(event.payload)},
              {"durable", event.durable}};
    if (event.durable) json["idempotencyKey"] = event.key;
    events.push_back(std::move(json));
  }
  Json effects = Json::array();
  for (const Effect& effect : decision.effects) effects.push_back(effect_json(effect));
  const auto* wait = std::get_if<Wait>(&decision.reply);
  return {
      {"state", state_json(decision.state)},
      {"events", std::move(events)},
      {"effects", std::move(effects)},
      {"reply", wait != nullptr ? Json{{"kind", "wait"}, {"since", wait->since}} : Json{{"kind", "proceed"}}},
      {"persist", decision.persist},
      {"changed", decision.changed}};
}

Result<Output> call_decide(const CallInput& input) {
  auto state = read_object(input.json, "state").and_then(read_state);
  if (!state) return propagate(state);
  const auto command = read_object(input.json, "command").and_then(read_command);
  if (!command) return propagate(command);
  const auto context = read_object(input.json, "context").and_then(read_context);
  if (!context) return propagate(context);
  const auto decision = decide(std::move(*state), *command, *context);
  if (!decision) return propagate(decision);
  return Output{decision_json(*decision)};
}

Result<Output> call_react(const CallInput& input) {
  auto state = read_object(input.json, "state").and_then(read_state);
  if (!state) return propagate(state);
  const auto signal = read_object(input.json, "signal").and_then(read_signal);
  if (!signal) return propagate(signal);
  const auto context = read_object(input.json, "context").and_then(read_context);
  if (!context) return propagate(context);
  return Output{decision_json(react(std::move(*state), *signal, *context))};
}

Result<Output> call_evolve(const CallInput& input) {
  auto state = read_object(input.json, "state").and_then(read_state);
  if (!state) return propagate(state);
  const auto event = read_object(input.json, "event");
  if (!event) return propagate(event);
  const auto type = read_string(*event, "type");
  if (!type) return propagate(type);
  if (!type->starts_with(kEventTypePrefix)) return Output{state_json(*state)};
  const std::string_view name = type->substr(kEventTypePrefix.size());
  const auto payload =
      read_object(*event, "payload").and_then([&](Input p) { return read_payload(name, p); });
  // A malformed event that is on the stream already means nothing, as in the
  // projection.
  if (!payload) return Output{state_json(*state)};
  return Output{state_json(evolve(std::move(*state), name, *payload))};
}

Result<Output> call_initial_state(const CallInput&) {
  return Output{state_json(initial_state())};
}

Result<Output> call_fences(const CallInput&) {
  Json list = Json::array();
  for (const Fence& fence : fences()) list.push_back({{"method", fence.method}, {"advice", fence.advice}});
  return Output{std::move(list)};
}

constexpr std::array kLifecycleFunctions{
    FunctionEntry{"initialState", call_initial_state},
    FunctionEntry{"decide", call_decide},
    FunctionEntry{"react", call_react},
    FunctionEntry{"evolve", call_evolve},
    FunctionEntry{"fencedMethods", call_fences},
};

}  // namespace

std::optional<std::string> Fields::optional_string(std::string_view key) {
  const auto value = keep(read_optional_string(object_, key));
  return value ? std::optional{std::string(*value)} : std::nullopt;
}

std::optional<SleepAfter> Fields::sleep_after(std::string_view key) {
  const auto value = find(object_, key);
  if (!value || value->is_null()) return std::nullopt;
  if (value->is_string()) return SleepAfter{string(key)};
  return SleepAfter{number(key)};
}

std::vector<std::string> Fields::strings(std::string_view key) {
  const auto views = keep(read_strings(object_, key));
  return {views.begin(), views.end()};
}

std::optional<Input> Fields::object(std::string_view key) {
  const auto found = read_object(object_, key);
  if (found) return *found;
  refuse(found.error());
  return std::nullopt;
}

EnvMap Fields::env_map(std::string_view key) {
  EnvMap env;
  for (const auto& [name, value] : keep(read_string_map(object_, key)))
    env[std::string(name)] = std::string(value);
  return env;
}

EnvChanges Fields::env_changes(std::string_view key) {
  EnvChanges changes;
  const auto found = object(key);
  if (!found) return changes;
  simdjson::dom::object fields;
  if (found->get(fields) != simdjson::SUCCESS) return changes;
  for (const auto field : fields) {
    std::string_view text;
    if (field.value.is_null()) {
      changes[std::string(field.key)] = std::nullopt;
    } else if (field.value.get(text) == simdjson::SUCCESS) {
      changes[std::string(field.key)] = std::string(text);
    } else {
      refuse(wrong_type(std::string(key) + "." + std::string(field.key), field.value,
                        "a string, or null to unset"));
    }
  }
  return changes;
}

std::span<const FunctionEntry> lifecycle_functions() {
  return kLifecycleFunctions;
}

}  // namespace sandboxes::bindings
