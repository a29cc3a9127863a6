#include <array>

#include "codec.hpp"
#include "sandboxes/environment.hpp"
#include "sandboxes/exec.hpp"
#include "sandboxes/settings.hpp"

namespace sandboxes::bindings {

namespace {

/// An object of strings and nulls; absent means empty. Anything else names the variable.
Result<EnvChanges> read_changes(Input object, std::string_view key) {
  const auto given = read_optional_object(object, key);
  if (!given) return propagate(given);
  EnvChanges changes;
  simdjson::dom::object members;
  if (!*given || (*given)->get_object().get(members) != simdjson::SUCCESS) return changes;
  for (const auto field : members) {
    std::string_view text;
    if (field.value.is_null()) {
      changes[std::string(field.key)] = std::nullopt;
    } else if (field.value.get_string().get(text) == simdjson::SUCCESS) {
      changes[std::string(field.key)] = std::string(text);
    } else {
      return fail(InvalidEnv{std::string(field.key), "its value is " + type_name(field.value) +
                                                         ", and only a string or null can be one"});
    }
  }
  return changes;
}

Json changes_json(const EnvChanges& changes) {
  Json json = Json::object();
  for (const auto& [key, value] : changes) json[key] = value ? Json(*value) : Json(nullptr);
  return json;
}

Result<Output> merge(const CallInput& input) {
  const auto stored = read_changes(input.json, "stored");
  if (!stored) return propagate(stored);
  const auto changes = read_changes(input.json, "changes");
  if (!changes) return propagate(changes);
  const auto allow = read_optional_bool(input.json, "allowRawSecrets");
  if (!allow) return propagate(allow);
  EnvMap map;
  for (const auto& [key, value] : *stored) {
    if (value) map[key] = *value;
  }
  const auto merged = merge_env(map, *changes, allow->value_or(false));
  if (!merged) return propagate(merged);
  return Output{Json{{"stored", Json(merged->stored)}, {"configured", changes_json(merged->configured)}}};
}

Result<Output> effective(const CallInput& input) {
  EnvLayers layers;
  const std::pair<const char*, EnvChanges*> all[] = {{"image", &layers.image},
                                                     {"discovered", &layers.discovered},
                                                     {"stored", &layers.stored},
                                                     {"session", &layers.session},
                                                     {"command", &layers.command}};
  for (const auto& [key, layer] : all) {
    auto read = read_changes(input.json, key);
    if (!read) return propagate(read);
    *layer = std::move(*read);
  }
  const auto env = effective_env(layers);
  if (!env) return propagate(env);
  return Output{Json(*env)};
}

Result<Output> github_token(const CallInput& input) {
  const auto given = read_array(input.json, "connections");
  if (!given) return propagate(given);
  std::vector<Connection> connections;
  for (const Input one : *given) {
    if (!one.is_object()) return tl::unexpected(wrong_type("connections", one, "an array of objects"));
    const auto integration = read_string(one, "integration");
    if (!integration) return propagate(integration);
    const auto connection = read_string(one, "connection");
    if (!connection) return propagate(connection);
    const auto secret_path = read_optional_string(one, "secretPath");
    if (!secret_path) return propagate(secret_path);
    connections.push_back({*integration, *connection, *secret_path});
  }
  Json json = Json::object();
  if (auto token = github_token_placeholder(connections)) json["GH_TOKEN"] = std::move(*token);
  return Output{std::move(json)};
}

Result<Output> git_config(const CallInput& input) {
  GitIdentity identity;
  const std::pair<const char*, std::optional<std::string_view>*> all[] = {
      {"name", &identity.name}, {"email", &identity.email}, {"placeholder", &identity.placeholder}};
  for (const auto& [key, field] : all) {
    const auto read = read_optional_string(input.json, key);
    if (!read) return propagate(read);
    *field = *read;
  }
  auto line = git_config_shell(identity);
  if (!line) return propagate(line);
  return Output{Json(std::move(*line))};
}

std::string shown(std::optional<Input> value) {
  if (!value) return "(absent)";
  return value->is_number() || value->is_bool() || value->is_string() ? print(to_json(*value))
                                                                      : type_name(value);
}

Result<Output> check_exec(const CallInput& input) {
  const auto command = find(input.json, "command");
  std::string_view text;
  if (!command || command->get_string().get(text) != simdjson::SUCCESS) {
    return fail(InvalidCommand{"it is " + type_name(command)});
  }
  if (auto fine = validate_command(text); !fine) return propagate(fine);
  // JSON has no NaN: it arrives as null, and so does an infinity.
  const auto timeout = find(input.json, "timeout");
  if (!timeout) return Output{Json(nullptr)};
  double milliseconds = 0;
  if (timeout->get_double().get(milliseconds) != simdjson::SUCCESS)
    return fail(InvalidTimeout{shown(timeout)});
  if (auto fine = validate_timeout(milliseconds); !fine) return propagate(fine);
  return Output{Json(nullptr)};
}

Result<Output> check_sleep_after(const CallInput& input) {
  const auto value = find(input.json, "value");
  std::string_view text;
  double number = 0;
  Result<double> seconds = fail(InvalidSleepAfter{shown(value)});
  if (value && value->get_string().get(text) == simdjson::SUCCESS) {
    seconds = validate_sleep_after(text);
  } else if (value && value->get_double().get(number) == simdjson::SUCCESS) {
    seconds = validate_sleep_after(number);
  }
  if (!seconds) return propagate(seconds);
  return Output{Json(*seconds)};
}

constexpr std::array kEnvironmentFunctions{
    FunctionEntry{"mergeEnv", merge},
    FunctionEntry{"effectiveEnv", effective},
    FunctionEntry{"githubTokenEnv", github_token},
    FunctionEntry{"gitConfigShell", git_config},
    FunctionEntry{"validateExec", check_exec},
    FunctionEntry{"validateSleepAfter", check_sleep_after},
};

}  // namespace

std::span<const FunctionEntry> environment_functions() {
  return kEnvironmentFunctions;
}

}  // namespace sandboxes::bindings
