#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// Who an object is: its project, and its stream path within it.
struct Identity {
  std::string project_id;
  std::string path;
  bool operator==(const Identity&) const = default;
};

/// `[a-z0-9][a-z0-9_-]{0,62}`: a host label. Every other byte is refused, since `prj_a@prj_b` or `Prj_a`
/// would reach another project on some route.
[[nodiscard]] Result<void> check_project_id(std::string_view id);

/// A canonical absolute path of one or more segments, or `/`: the same bytes before and after any WHATWG URL
/// parser.
[[nodiscard]] Result<void> check_stream_path(std::string_view path);
/// Exactly `/sandboxes/<name>`.
[[nodiscard]] Result<void> check_sandbox_path(std::string_view path);
/// `/secrets/` and one or more segments; no percent sign either, since a placeholder may be percent-encoded
/// as a whole.
[[nodiscard]] Result<void> check_secret_path(std::string_view path);

/// `{projectId}.iterate{path}`, at most 256 bytes. The inverse of `parse_durable_object_name` for every
/// accepted input: project ids have no dot, so the first `.iterate/` ends the id.
[[nodiscard]] Result<std::string> durable_object_name(const Identity& identity);
[[nodiscard]] Result<Identity> parse_durable_object_name(std::string_view name);

/// `/a/b/c` → `/`, `/a`, `/a/b`.
[[nodiscard]] Result<std::vector<std::string>> stream_ancestors(std::string_view path);

/// Identity is write-once: what is stored holds, and what is given must be the same.
[[nodiscard]] Result<Identity> ensure_identity(const Identity* stored, const Identity& given);

}  // namespace sandboxes
