#include <array>

#include "lifecycle_json.hpp"

namespace sandboxes::bindings {

using namespace lifecycle;

namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

constexpr std::array<std::string_view, 3> kReasons{"asked", "idle", "restart"};
constexpr std::array<std::string_view, 4> kSteps{"restore", "env", "session", "git"};
constexpr std::array<std::string_view, 3> kOutboxStatuses{"idle", "appending", "failed"};
constexpr std::array<std::string_view, 4> kFailureKinds{"boot", "restore", "setUp", "tearDown"};

template <class Enum, std::size_t Size>
std::string_view name_of(const std::array<std::string_view, Size>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <class Enum, std::size_t Size>
Enum read_enum(Fields& fields, std::string_view key, const std::array<std::string_view, Size>& names) {
  const std::string given = fields.string(key);
  for (std::size_t i = 0; i < Size; ++i) {
    if (names[i] == given) return static_cast<Enum>(i);
  }
  fields.refuse(wrong_type(key, find(fields.source(), key), "a value that an earlier state held"));
  return static_cast<Enum>(0);
}

Json env_json(const EnvMap& env) {
  Json json = Json::object();
  for (const auto& [key, value] : env) json[key] = value;
  return json;
}

Json input_json(const CreateInput& input) {
  Json json{{"instanceType", input.instance_type}};
  if (input.sleep_after) json["sleepAfter"] = sleep_after_json(*input.sleep_after);
  if (input.keep_alive) json["keepAlive"] = *input.keep_alive;
  if (input.env) json["env"] = env_json(*input.env);
  return json;
}

Result<CreateInput> read_input(Input object) {
  Fields fields(object);
  CreateInput input{fields.string("instanceType"), fields.sleep_after("sleepAfter"),
                    fields.optional_boolean("keepAlive"), std::nullopt};
  if (find(object, "env")) input.env = fields.env_map("env");
  return fields.done(std::move(input));
}

Json record_json(const Record& record) {
  return {{"projectId", record.identity.project_id},
          {"path", record.identity.path},
          {"createdAt", record.created_at},
          {"input", input_json(record.input)}};
}

Result<Record> read_record(Input object) {
  Fields fields(object);
  Record record{{fields.string("projectId"), fields.string("path")}, {}, fields.integer("createdAt")};
  if (const auto input = fields.object("input")) record.input = fields.keep(read_input(*input));
  return fields.done(std::move(record));
}

Json config_json(const Config& config) {
  Json json{{"env", env_json(config.env)}, {"keepAlive", config.keep_alive}, {"version", config.version}};
  if (config.sleep_after) json["sleepAfter"] = sleep_after_json(*config.sleep_after);
  return json;
}

Result<Config> read_config(Input object) {
  Fields fields(object);
  return fields.done(Config{fields.env_map("env"), fields.sleep_after("sleepAfter"),
                            fields.boolean("keepAlive"), fields.integer("version")});
}

Json container_json(const Container& container) {
  return std::visit(
      Overloaded{
          [](const Down&) {
            return Json{{"kind", "down"}};
          },
          [](const Booting& c) {
            return Json{{"kind", "booting"}, {"incarnation", c.incarnation}, {"announced", c.announced}};
          },
          [](const Fresh& c) {
            return Json{{"kind", "fresh"}, {"incarnation", c.incarnation}};
          },
          [](const SettingUp& c) {
            return Json{{"kind", "settingUp"},
                        {"incarnation", c.incarnation},
                        {"step", name_of(kSteps, c.step)},
                        {"attempt", c.attempt},
                        {"configVersion", c.config_version}};
          },
          [](const Ready& c) {
            return Json{{"kind", "ready"},
                        {"incarnation", c.incarnation},
                        {"configVersion", c.config_version},
                        {"applying", c.applying}};
          },
          [](const Snapshotting& c) {
            return Json{{"kind", "snapshotting"},
                        {"incarnation", c.incarnation},
                        {"configVersion", c.config_version},
                        {"reason", name_of(kReasons, c.reason)}};
          },
          [](const TearingDown& c) {
            return Json{{"kind", "tearingDown"},
                        {"incarnation", c.incarnation},
                        {"configVersion", c.config_version},
                        {"announced", c.announced},
                        {"wasReady", c.was_ready}};
          },
      },
      container);
}

Result<Container> read_container(Input object) {
  Fields f(object);
  const std::string kind = f.string("kind");
  if (kind == "down") return f.done(Container{Down{}});
  const std::int64_t incarnation = f.integer("incarnation");
  if (kind == "booting") return f.done(Container{Booting{incarnation, f.boolean("announced")}});
  if (kind == "fresh") return f.done(Container{Fresh{incarnation}});
  if (kind == "settingUp") {
    return f.done(Container{SettingUp{incarnation, read_enum<SetUpStep>(f, "step", kSteps),
                                      f.integer("attempt"), f.integer("configVersion")}});
  }
  if (kind == "ready") {
    return f.done(Container{Ready{incarnation, f.integer("configVersion"), f.boolean("applying")}});
  }
  if (kind == "snapshotting") {
    return f.done(Container{Snapshotting{incarnation, f.integer("configVersion"),
                                         read_enum<SleepReason>(f, "reason", kReasons)}});
  }
  if (kind == "tearingDown") {
    return f.done(Container{
        TearingDown{incarnation, f.integer("configVersion"), f.boolean("announced"), f.boolean("wasReady")}});
  }
  f.refuse(wrong_type("state.life.container.kind", find(object, "kind"), "a kind of container state"));
  return f.done(Container{});
}

Json life_json(const Life& life) {
  return std::visit(
      Overloaded{
          [](const Unborn&) {
            return Json{{"kind", "unborn"}};
          },
          [](const Pending& l) {
            return Json{{"kind", "pending"}, {"record", record_json(l.record)}, {"attempt", l.attempt}};
          },
          [](const Live& l) {
            Json json{{"kind", "live"},
                      {"record", record_json(l.record)},
                      {"config", config_json(l.config)},
                      {"container", container_json(l.container)}};
            if (l.snapshot) json["snapshot"] = handle_json(*l.snapshot);
            return json;
          },
          [](const Destroying& l) {
            return Json{{"kind", "destroying"},         {"record", record_json(l.record)},
                        {"incarnation", l.incarnation}, {"announced", l.announced},
                        {"tornDown", l.torn_down},      {"working", l.working}};
          },
          [](const Destroyed& l) {
            return Json{{"kind", "destroyed"}, {"record", record_json(l.record)}};
          },
      },
      life);
}

Result<Life> read_life(Input object) {
  Fields f(object);
  const std::string kind = f.string("kind");
  if (kind == "unborn") return f.done(Life{Unborn{}});
  Record record;
  if (const auto found = f.object("record")) record = f.keep(read_record(*found));
  if (kind == "pending") return f.done(Life{Pending{std::move(record), f.boolean("attempt")}});
  if (kind == "destroyed") return f.done(Life{Destroyed{std::move(record)}});
  if (kind == "destroying") {
    return f.done(Life{Destroying{std::move(record), f.integer("incarnation"), f.boolean("announced"),
                                  f.boolean("tornDown"), f.boolean("working")}});
  }
  if (kind != "live") f.refuse(wrong_type("state.life.kind", find(object, "kind"), "a kind of life"));
  Live live{std::move(record), {}, std::nullopt, Down{}};
  if (const auto config = f.object("config")) live.config = f.keep(read_config(*config));
  if (const auto snapshot = f.optional_object("snapshot")) live.snapshot = f.keep(read_handle(*snapshot));
  if (const auto container = f.object("container")) live.container = f.keep(read_container(*container));
  return f.done(Life{std::move(live)});
}

Result<Event> read_outbox_event(Input object) {
  Fields fields(object);
  Event event{fields.string("name"), NoPayload{}, fields.string("key"), true};
  if (const auto payload = fields.object("payload"))
    event.payload = fields.keep(read_payload(event.name, *payload));
  return fields.done(std::move(event));
}

Result<SnapshotLoss> read_snapshot_loss(Input object) {
  Fields fields(object);
  return fields.done(SnapshotLoss{fields.integer("incarnation"), fields.string("reason")});
}

Result<Failure> read_failure(Input object) {
  Fields fields(object);
  return fields.done(Failure{fields.integer("incarnation"),
                             read_enum<FailureKind>(fields, "kind", kFailureKinds), fields.string("step"),
                             fields.string("reason")});
}

}  // namespace

Json sleep_after_json(const SleepAfter& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? Json(*text) : Json(std::get<double>(value));
}

Json handle_json(const SnapshotHandle& handle) {
  return {{"id", handle.id}, {"expiresAt", handle.expires_at}, {"manifest", handle.manifest}};
}

Result<SnapshotHandle> read_handle(Input object) {
  Fields fields(object);
  return fields.done(
      SnapshotHandle{fields.string("id"), fields.integer("expiresAt"), fields.string("manifest")});
}

Result<Identity> read_lifecycle_identity(Input object) {
  Fields fields(object);
  return fields.done(Identity{fields.string("projectId"), fields.string("path")});
}

Json payload_json(const Payload& payload) {
  return std::visit(Overloaded{
                        [](const NoPayload&) { return Json::object(); },
                        [](const CreatedPayload& p) {
                          return Json{{"config", {{"instanceType", p.instance_type}}}};
                        },
                        [](const ConfiguredPayload& p) {
                          Json json = Json::object();
                          if (p.env) {
                            Json env = Json::object();
                            for (const auto& [key, value] : *p.env)
                              env[key] = value ? Json(*value) : Json(nullptr);
                            json["env"] = std::move(env);
                          }
                          if (p.sleep_after) json["sleepAfter"] = sleep_after_json(*p.sleep_after);
                          if (p.keep_alive) json["keepAlive"] = *p.keep_alive;
                          return json;
                        },
                        [](const BackupPayload& p) {
                          return Json{{"backupId", p.backup_id}};
                        },
                        [](const FailurePayload& p) {
                          Json json{{"error", p.error}};
                          if (p.backup_id) json["backupId"] = *p.backup_id;
                          return json;
                        },
                        [](const StoppedPayload& p) {
                          return Json{{"reason", p.reason}};
                        },
                    },
                    payload);
}

Result<Payload> read_payload(std::string_view name, Input object) {
  Fields fields(object);
  if (name == "created") {
    const auto config = fields.object("config");
    if (!config) return fields.done(Payload{NoPayload{}});
    Fields inner(*config);
    return inner.done(Payload{CreatedPayload{inner.string("instanceType")}});
  }
  if (name == "configured") {
    ConfiguredPayload payload;
    if (find(object, "env")) payload.env = fields.env_changes("env");
    payload.keep_alive = fields.optional_boolean("keepAlive");
    payload.sleep_after = fields.sleep_after("sleepAfter");
    return fields.done(Payload{std::move(payload)});
  }
  if (name == "backup-created" || name == "workspace-restored" || name == "backup-expired") {
    return fields.done(Payload{BackupPayload{fields.string("backupId")}});
  }
  if (name == "backup-failed" || name == "restore-failed") {
    return fields.done(Payload{FailurePayload{fields.string("error"), fields.optional_string("backupId")}});
  }
  if (name == "stopped") {
    if (auto reason = fields.optional_string("reason")) return fields.done(Payload{StoppedPayload{*reason}});
  }
  return fields.done(Payload{NoPayload{}});
}

Json state_json(const State& state) {
  Json outbox = Json::array();
  for (const Event& event : state.outbox) {
    outbox.push_back({{"name", event.name},
                      {"type", std::string(kEventTypePrefix) + event.name},
                      {"key", event.key},
                      {"payload", payload_json(event.payload)}});
  }
  Json json{{"version", 1},
            {"life", life_json(state.life)},
            {"incarnation", state.incarnation},
            {"outbox", std::move(outbox)},
            {"inFlight", state.in_flight},
            {"outboxStatus", name_of(kOutboxStatuses, state.outbox_status)},
            {"outboxError", state.outbox_error},
            {"failure", nullptr}};
  if (state.failure) {
    json["failure"] = {{"incarnation", state.failure->incarnation},
                       {"kind", name_of(kFailureKinds, state.failure->kind)},
                       {"step", state.failure->step},
                       {"reason", state.failure->reason}};
  }
  if (state.lost_snapshot) {
    json["lostSnapshot"] = {{"incarnation", state.lost_snapshot->incarnation},
                            {"reason", state.lost_snapshot->reason}};
  }
  return json;
}

Result<State> read_state(Input object) {
  Fields fields(object);
  State state;
  if (fields.integer("version") != 1)
    fields.refuse(wrong_type("state.version", find(object, "version"), "1"));
  if (const auto life = fields.object("life")) state.life = fields.keep(read_life(*life));
  state.incarnation = fields.integer("incarnation");
  for (const Input event : fields.array("outbox"))
    state.outbox.push_back(fields.keep(read_outbox_event(event)));
  state.in_flight = fields.integer("inFlight");
  state.outbox_status = read_enum<OutboxStatus>(fields, "outboxStatus", kOutboxStatuses);
  state.outbox_error = fields.string("outboxError");
  if (const auto failure = fields.optional_object("failure"))
    state.failure = fields.keep(read_failure(*failure));
  if (const auto lost = fields.optional_object("lostSnapshot"))
    state.lost_snapshot = fields.keep(read_snapshot_loss(*lost));
  return fields.done(std::move(state));
}

}  // namespace sandboxes::bindings
