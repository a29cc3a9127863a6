#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes {

using EnvMap = std::map<std::string, std::string>;
/// No value means: unset.
using EnvChanges = std::map<std::string, std::optional<std::string>>;

/// The variables as JSON have to fit into one stream event beside its other fields.
inline constexpr std::int64_t kMaxEnvBytes = std::int64_t{120} * 1024;

/// Who commits from a sandbox when the configuration names nobody.
inline constexpr std::string_view kDefaultGitName = "iterate";
inline constexpr std::string_view kDefaultGitEmail = "iterate[bot]@users.noreply.github.com";

struct MergedEnv {
  EnvMap stored;
  EnvChanges configured;  ///< the payload of the event: an unset stays visible in the history
};

/// Applies changes to the stored map, or refuses them all. A value that looks like raw secret material is
/// refused unless `allow_raw_secrets`.
[[nodiscard]] Result<MergedEnv> merge_env(const EnvMap& stored, const EnvChanges& changes,
                                          bool allow_raw_secrets);

/// From the farthest to the nearest; a later layer wins, and its unset removes the variable.
struct EnvLayers {
  EnvChanges image;
  EnvChanges discovered;
  EnvChanges stored;
  EnvChanges session;
  EnvChanges command;
};
[[nodiscard]] Result<EnvMap> effective_env(const EnvLayers& layers);

/// What kind of raw secret a value looks like (`an OpenAI or similar key (sk-)`), if any.
[[nodiscard]] std::optional<std::string_view> looks_like_secret(std::string_view value);

struct Connection {
  std::string_view integration;
  std::string_view connection;
  std::optional<std::string_view> secret_path =
      std::nullopt;  ///< where its secret is, if not at the usual place
};

/// The placeholder for GH_TOKEN: the access token of the GitHub connection whose name sorts first. A name
/// that is no legal path segment is passed over, never built into a placeholder.
[[nodiscard]] std::optional<std::string> github_token_placeholder(const std::vector<Connection>& connections);

struct GitIdentity {
  std::optional<std::string_view> name;
  std::optional<std::string_view> email;
  std::optional<std::string_view> placeholder;  ///< the effective GH_TOKEN
};

/// One shell line that sets git's identity and, with a token, its Basic credentials for github.com. It leaves
/// alone what else a configuration that is there says.
[[nodiscard]] Result<std::string> git_config_shell(const GitIdentity& identity);

}  // namespace sandboxes
