#pragma once

#include <cstdint>

namespace sandboxes {

// Every numeric limit that more than one file needs, with the reason for its value.

/// More is refused before it is copied into the core: a Worker has 128 MB, and parsing needs a multiple of
/// the input.
inline constexpr std::int64_t kMaxInputBytes = std::int64_t{32} * 1024 * 1024;
/// Deeper JSON is refused: nothing of ours nests further, and the limit keeps every walk bounded.
inline constexpr std::int64_t kMaxNesting = 64;
/// Name of a Durable Object, in bytes.
inline constexpr std::int64_t kMaxNameBytes = 256;
/// A project id is a host label.
inline constexpr std::int64_t kMaxProjectIdBytes = 63;
/// One event, payload and all, as JSON text. SQLite rows and RPC messages stay small, so that a tail keeps
/// up.
inline constexpr std::int64_t kMaxEventBytes = std::int64_t{128} * 1024;
/// A JSON body in which placeholders are looked for.
inline constexpr std::int64_t kMaxTemplateBodyBytes = std::int64_t{1024} * 1024;
/// A snapshot nobody restored for so long is gone.
inline constexpr std::int64_t kSnapshotTtlSeconds = std::int64_t{90} * 24 * 60 * 60;

}  // namespace sandboxes
