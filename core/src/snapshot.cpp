#include "sandboxes/snapshot.hpp"

#include <algorithm>

#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

namespace {

constexpr std::size_t kMaxIdBytes = 128;

tl::unexpected<Error> refuse(std::string_view field, std::string reason) {
  return fail(InvalidSnapshot{std::string(field), std::move(reason)});
}

/// An id is a part of an object key in the bucket.
Result<void> check_id(std::string_view id) {
  const bool plain =
      std::all_of(id.begin(), id.end(), [](char c) { return is_alnum(c) || c == '-' || c == '_'; });
  if (id.empty() || id.size() > kMaxIdBytes || !plain) {
    return refuse("id", "must be 1 to 128 letters, digits, '-' and '_'");
  }
  return {};
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::string owner_name(const Identity& identity) {
  return identity.project_id + identity.path;
}

}  // namespace

std::string_view transfer_name(SnapshotTransfer transfer) {
  switch (transfer) {
    case SnapshotTransfer::binding:
      return "binding";
    case SnapshotTransfer::presigned:
      return "presigned";
  }
  return "binding";
}

Result<SnapshotManifest> snapshot_manifest(const Identity& identity, std::int64_t now, std::string_view id,
                                           const SnapshotEnv& env) {
  if (auto fine = check_project_id(identity.project_id); !fine) return propagate(fine);
  if (auto fine = check_sandbox_path(identity.path); !fine) return propagate(fine);
  if (auto fine = backup_endpoint(env.endpoint); !fine) return propagate(fine);
  SnapshotManifest manifest;
  manifest.id = std::string(id);
  manifest.name = owner_name(identity);
  manifest.created_at = now;
  manifest.ttl_seconds = kSnapshotTtlSeconds;
  manifest.excludes = {std::string(kSnapshotExclude)};
  const bool can_presign = !env.access_key_id.empty() && !env.secret_access_key.empty() &&
                           !env.account_id.empty() && !env.bucket_name.empty();
  manifest.transfer = can_presign ? SnapshotTransfer::presigned : SnapshotTransfer::binding;
  if (auto fine = check_manifest(manifest); !fine) return propagate(fine);
  return manifest;
}

Result<void> check_manifest(const SnapshotManifest& manifest) {
  if (manifest.version != 1 && manifest.version != 2) return refuse("version", "must be 1 or 2");
  if (auto fine = check_id(manifest.id); !fine) return fine;
  if (manifest.dir != kSnapshotDirectory) return refuse("dir", "must be \"/workspace\"");
  if (manifest.ttl_seconds <= 0) return refuse("ttlSeconds", "must be positive");
  if (manifest.size_bytes && *manifest.size_bytes < 0) return refuse("sizeBytes", "must not be negative");
  if (manifest.sha256 && !is_sha256(*manifest.sha256))
    return refuse("sha256", "must be 64 lower-case hex digits");
  if (manifest.version == 1) return {};
  if (!manifest.name) return refuse("name", "is missing");
  if (!manifest.created_at || *manifest.created_at < 0)
    return refuse("createdAt", "must be milliseconds since 1970");
  return {};
}

Result<void> check_snapshot_owner(const SnapshotManifest& manifest, const Identity& identity) {
  if (manifest.name && *manifest.name != owner_name(identity)) return fail(BackupNotFound{manifest.id});
  return {};
}

bool snapshot_usable(const SnapshotManifest& manifest, std::int64_t now) {
  if (!manifest.created_at) return true;
  return now < *manifest.created_at + (manifest.ttl_seconds - kSnapshotMarginSeconds) * 1000;
}

Result<std::optional<std::string>> backup_endpoint(std::string_view value) {
  if (value.empty()) return std::optional<std::string>();
  const auto refuse_it = [value](std::string reason) {
    return fail(InvalidEndpoint{std::string(value), std::move(reason)});
  };
  const auto url = parse_url(value);
  if (!url) return refuse_it("it is no URL");
  if (url->scheme != "https") return refuse_it("its scheme is not https");
  const std::string_view path = url->path.of(value);
  const bool bare = (path.empty() || path == "/") && !url->has_query &&
                    url->fragment.begin == url->fragment.end && value.find('#') == std::string_view::npos &&
                    !url->has_userinfo;
  if (!bare) return refuse_it("it is more than an origin");
  return std::optional(origin_text(*url));
}

}  // namespace sandboxes
