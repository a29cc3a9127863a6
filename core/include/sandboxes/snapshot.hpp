#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/identity.hpp"
#include "sandboxes/result.hpp"

namespace sandboxes {

inline constexpr std::string_view kSnapshotDirectory = "/workspace";
inline constexpr std::string_view kSnapshotPrefix = "backups/";
/// What a package manager brings back is not kept.
inline constexpr std::string_view kSnapshotExclude = "node_modules";
/// The SDK refuses a restore that would begin in the last minute of the time to live.
inline constexpr std::int64_t kSnapshotMarginSeconds = 60;

/// How an archive travels: through the object's bucket binding, or by presigned URLs from the container
/// itself.
enum class SnapshotTransfer : std::uint8_t { binding, presigned };
[[nodiscard]] std::string_view transfer_name(SnapshotTransfer transfer);

/// The configuration that decides the transfer. An empty text counts as absent.
struct SnapshotEnv {
  std::string_view access_key_id;
  std::string_view secret_access_key;
  std::string_view account_id;
  std::string_view bucket_name;
  std::string_view endpoint;
};

/// What points to a snapshot. Version 1 is the SDK's bare handle: it knows neither its name nor its age.
struct SnapshotManifest {
  std::int64_t version = 2;
  std::string id;
  std::string dir{kSnapshotDirectory};
  std::optional<std::string> name;
  std::optional<std::int64_t> created_at;  ///< milliseconds since 1970
  std::int64_t ttl_seconds = 0;
  std::vector<std::string> excludes;
  bool gitignore = true;
  SnapshotTransfer transfer = SnapshotTransfer::binding;
  std::optional<std::int64_t> size_bytes;
  std::optional<std::string> sha256;
  bool operator==(const SnapshotManifest&) const = default;
};

/// The manifest of a new snapshot.
[[nodiscard]] Result<SnapshotManifest> snapshot_manifest(const Identity& identity, std::int64_t now,
                                                         std::string_view id, const SnapshotEnv& env);
/// Refuses a manifest that was read and cannot be one of ours or the SDK's.
[[nodiscard]] Result<void> check_manifest(const SnapshotManifest& manifest);
/// Refuses a snapshot whose stored name is another sandbox's or another project's.
[[nodiscard]] Result<void> check_snapshot_owner(const SnapshotManifest& manifest, const Identity& identity);
/// Whether the SDK would still restore it. One of unknown age counts as usable: the SDK knows better.
[[nodiscard]] bool snapshot_usable(const SnapshotManifest& manifest, std::int64_t now);

/// The origin of BACKUP_BUCKET_ENDPOINT; nothing when it is not configured.
[[nodiscard]] Result<std::optional<std::string>> backup_endpoint(std::string_view value);

}  // namespace sandboxes
