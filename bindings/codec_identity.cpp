#include <array>

#include "codec.hpp"
#include "sandboxes/identity.hpp"

namespace sandboxes::bindings {

namespace {

Json identity_json(const Identity& identity) {
  return Json{{"projectId", identity.project_id}, {"path", identity.path}};
}

Result<Identity> read_identity(Input object) {
  const auto project_id = read_string(object, "projectId");
  if (!project_id) return propagate(project_id);
  const auto path = read_string(object, "path");
  if (!path) return propagate(path);
  return Identity{std::string(*project_id), std::string(*path)};
}

/// The checks answer the value itself, so that they can stand in an expression.
template <Result<void> (*Check)(std::string_view)>
Result<Output> checked(const CallInput& input) {
  const auto value = read_string(input.json, "value");
  if (!value) return propagate(value);
  if (const auto passed = Check(*value); !passed) return propagate(passed);
  return Output{Json(*value)};
}

Result<Output> name_of(const CallInput& input) {
  const auto identity = read_identity(input.json);
  if (!identity) return propagate(identity);
  const auto name = durable_object_name(*identity);
  if (!name) return propagate(name);
  return Output{Json(*name)};
}

Result<Output> parse_name(const CallInput& input) {
  const auto name = read_string(input.json, "name");
  if (!name) return propagate(name);
  const auto identity = parse_durable_object_name(*name);
  if (!identity) return propagate(identity);
  return Output{identity_json(*identity)};
}

Result<Output> ancestors(const CallInput& input) {
  const auto path = read_string(input.json, "path");
  if (!path) return propagate(path);
  const auto paths = stream_ancestors(*path);
  if (!paths) return propagate(paths);
  return Output{Json(*paths)};
}

Result<Output> ensure(const CallInput& input) {
  const auto stored = read_optional_object(input.json, "stored");
  if (!stored) return propagate(stored);
  const auto given = read_object(input.json, "given").and_then(read_identity);
  if (!given) return propagate(given);
  if (!*stored) {
    const auto identity = ensure_identity(nullptr, *given);
    if (!identity) return propagate(identity);
    return Output{identity_json(*identity)};
  }
  const auto known = read_identity(**stored);
  if (!known) return propagate(known);
  const auto identity = ensure_identity(&*known, *given);
  if (!identity) return propagate(identity);
  return Output{identity_json(*identity)};
}

constexpr std::array kIdentityFunctions{
    FunctionEntry{"durableObjectName", name_of},
    FunctionEntry{"parseDurableObjectName", parse_name},
    FunctionEntry{"assertProjectId", checked<check_project_id>},
    FunctionEntry{"assertSandboxPath", checked<check_sandbox_path>},
    FunctionEntry{"assertSecretPath", checked<check_secret_path>},
    FunctionEntry{"assertStreamPath", checked<check_stream_path>},
    FunctionEntry{"streamAncestors", ancestors},
    FunctionEntry{"ensureIdentity", ensure},
};

}  // namespace

std::span<const FunctionEntry> identity_functions() {
  return kIdentityFunctions;
}

}  // namespace sandboxes::bindings
