#include <array>

#include "codec.hpp"
#include "sandboxes/limits.hpp"
#include "sandboxes/snapshot.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

namespace {

constexpr std::int64_t kDaySeconds = std::int64_t{24} * 60 * 60;

Json manifest_json(const SnapshotManifest& manifest) {
  Json json = Json::object();
  json["version"] = manifest.version;
  json["id"] = manifest.id;
  json["dir"] = manifest.dir;
  if (manifest.name) json["name"] = *manifest.name;
  if (manifest.created_at) json["createdAt"] = *manifest.created_at;
  json["ttlSeconds"] = manifest.ttl_seconds;
  json["excludes"] = Json(manifest.excludes);
  json["gitignore"] = manifest.gitignore;
  json["transfer"] = transfer_name(manifest.transfer);
  if (manifest.size_bytes) json["sizeBytes"] = *manifest.size_bytes;
  if (manifest.sha256) json["sha256"] = *manifest.sha256;
  return json;
}

Result<SnapshotTransfer> read_transfer(Input object) {
  const auto text = read_string(object, "transfer");
  if (!text) return propagate(text);
  if (*text == "binding") return SnapshotTransfer::binding;
  if (*text == "presigned") return SnapshotTransfer::presigned;
  return fail(InvalidSnapshot{"transfer", "must be \"binding\" or \"presigned\""});
}

/// The SDK's bare handle. What it does not say is what our snapshots always were.
Result<SnapshotManifest> read_version_1(Input object) {
  SnapshotManifest manifest;
  manifest.version = 1;
  manifest.ttl_seconds = kSnapshotTtlSeconds;
  manifest.excludes = {std::string(kSnapshotExclude)};
  const auto local = read_optional_bool(object, "localBucket");
  if (!local) return propagate(local);
  manifest.transfer = local->value_or(false) ? SnapshotTransfer::binding : SnapshotTransfer::presigned;
  const auto transfer = read_optional_string(object, "transfer");
  if (!transfer) return propagate(transfer);
  if (*transfer) {
    const auto read = read_transfer(object);
    if (!read) return propagate(read);
    manifest.transfer = *read;
  }
  return manifest;
}

template <class From, class To>
bool take(Result<std::optional<From>> read, std::optional<To>& out, std::optional<Error>& error) {
  if (!read) {
    error = read.error();
    return false;
  }
  if (*read) out = To(**read);
  return true;
}

Result<SnapshotManifest> read_version_2(Input object) {
  SnapshotManifest manifest;
  std::optional<Error> error;
  const bool read = take(read_optional_string(object, "name"), manifest.name, error) &&
                    take(read_optional_int(object, "createdAt"), manifest.created_at, error) &&
                    take(read_optional_int(object, "sizeBytes"), manifest.size_bytes, error) &&
                    take(read_optional_string(object, "sha256"), manifest.sha256, error);
  if (!read) return tl::unexpected(*error);
  const auto ttl = read_int(object, "ttlSeconds");
  if (!ttl) return propagate(ttl);
  manifest.ttl_seconds = *ttl;
  const auto excludes = read_strings(object, "excludes");
  if (!excludes) return propagate(excludes);
  manifest.excludes.assign(excludes->begin(), excludes->end());
  const auto gitignore = read_bool(object, "gitignore");
  if (!gitignore) return propagate(gitignore);
  manifest.gitignore = *gitignore;
  const auto transfer = read_transfer(object);
  if (!transfer) return propagate(transfer);
  manifest.transfer = *transfer;
  return manifest;
}

Result<SnapshotManifest> read_manifest(Input object) {
  const auto version = read_optional_int(object, "version");
  if (!version) return propagate(version);
  if (version->value_or(1) != 1 && **version != 2) return fail(InvalidSnapshot{"version", "must be 1 or 2"});
  auto manifest = version->value_or(1) == 2 ? read_version_2(object) : read_version_1(object);
  if (!manifest) return manifest;
  const auto id = read_string(object, "id");
  if (!id) return propagate(id);
  manifest->id = std::string(*id);
  const auto dir = read_string(object, "dir");
  if (!dir) return propagate(dir);
  manifest->dir = std::string(*dir);
  if (auto fine = check_manifest(*manifest); !fine) return propagate(fine);
  return manifest;
}

Result<SnapshotManifest> read_manifest_argument(const CallInput& input) {
  const auto object = read_object(input.json, "manifest");
  if (!object) return propagate(object);
  return read_manifest(*object);
}

Result<Identity> read_identity(const CallInput& input) {
  const auto object = read_object(input.json, "identity");
  if (!object) return propagate(object);
  const auto project = read_string(*object, "projectId");
  if (!project) return propagate(project);
  const auto path = read_string(*object, "path");
  if (!path) return propagate(path);
  return Identity{std::string(*project), std::string(*path)};
}

Result<Output> make_manifest(const CallInput& input) {
  const auto identity = read_identity(input);
  if (!identity) return propagate(identity);
  const auto now = read_int(input.json, "now");
  if (!now) return propagate(now);
  const auto id = read_string(input.json, "id");
  if (!id) return propagate(id);
  const auto given = read_optional_object(input.json, "env");
  if (!given) return propagate(given);
  SnapshotEnv env;
  const std::pair<const char*, std::string_view*> all[] = {{"R2_ACCESS_KEY_ID", &env.access_key_id},
                                                           {"R2_SECRET_ACCESS_KEY", &env.secret_access_key},
                                                           {"CLOUDFLARE_R2_ACCOUNT_ID", &env.account_id},
                                                           {"BACKUP_BUCKET_NAME", &env.bucket_name},
                                                           {"BACKUP_BUCKET_ENDPOINT", &env.endpoint}};
  for (const auto& [key, value] : all) {
    if (!*given) break;
    const auto read = read_optional_string(**given, key);
    if (!read) return propagate(read);
    *value = read->value_or("");
  }
  const auto manifest = snapshot_manifest(*identity, *now, *id, env);
  if (!manifest) return propagate(manifest);
  return Output{manifest_json(*manifest)};
}

/// `handle` is the object or its JSON text.
Result<Output> parse_handle(const CallInput& input) {
  auto handle = find(input.json, "handle");
  simdjson::padded_string text;
  if (handle && handle->is_string()) {
    text = simdjson::padded_string(handle->get_string().value_unsafe());
    const auto parsed = parse_padded(input.session.body_parser, std::string_view(text), "snapshot handle");
    if (!parsed) return propagate(parsed);
    handle = *parsed;
  }
  if (!handle || !handle->is_object())
    return tl::unexpected(wrong_type("handle", handle, "an object or its JSON text"));
  const auto manifest = read_manifest(*handle);
  if (!manifest) return propagate(manifest);
  return Output{manifest_json(*manifest)};
}

Result<Output> options(const CallInput& input) {
  const auto manifest = read_manifest_argument(input);
  if (!manifest) return propagate(manifest);
  Json json = Json::object();
  json["dir"] = manifest->dir;
  if (manifest->name) json["name"] = *manifest->name;
  json["ttl"] = manifest->ttl_seconds;
  json["gitignore"] = manifest->gitignore;
  json["excludes"] = Json(manifest->excludes);
  if (manifest->transfer == SnapshotTransfer::binding) json["localBucket"] = true;
  return Output{std::move(json)};
}

Result<Output> state(const CallInput& input) {
  const auto manifest = read_manifest_argument(input);
  if (!manifest) return propagate(manifest);
  const auto now = read_int(input.json, "now");
  if (!now) return propagate(now);
  return Output{Json(snapshot_usable(*manifest, *now) ? "usable" : "expired")};
}

Result<Output> check_owner(const CallInput& input) {
  const auto manifest = read_manifest_argument(input);
  if (!manifest) return propagate(manifest);
  const auto identity = read_identity(input);
  if (!identity) return propagate(identity);
  if (auto owned = check_snapshot_owner(*manifest, *identity); !owned) return propagate(owned);
  return Output{Json(nullptr)};
}

/// A rule of R2's lifecycle API: what no sandbox can restore any more is deleted, half-sent archives after a
/// day.
Result<Output> lifecycle_rule(const CallInput&) {
  const auto after = [](std::int64_t seconds) {
    return Json{{"condition", Json{{"type", "Age"}, {"maxAge", seconds}}}};
  };
  Json json = Json::object();
  json["id"] = "expire-sandbox-backups";
  json["enabled"] = true;
  json["conditions"] = Json{{"prefix", kSnapshotPrefix}};
  json["deleteObjectsTransition"] = after(kSnapshotTtlSeconds);
  json["abortMultipartUploadsTransition"] = after(kDaySeconds);
  return Output{std::move(json)};
}

constexpr std::array kSnapshotFunctions{
    FunctionEntry{"snapshotManifest", make_manifest}, FunctionEntry{"parseSnapshotHandle", parse_handle},
    FunctionEntry{"backupOptions", options},          FunctionEntry{"snapshotState", state},
    FunctionEntry{"checkSnapshotOwner", check_owner}, FunctionEntry{"backupLifecycleRule", lifecycle_rule},
};

}  // namespace

std::span<const FunctionEntry> snapshot_functions() {
  return kSnapshotFunctions;
}

}  // namespace sandboxes::bindings
