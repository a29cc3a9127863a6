#include "sandboxes/identity.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr std::string_view kSeparator = ".iterate";
constexpr std::string_view kSandboxes = "/sandboxes/";
constexpr std::string_view kSecrets = "/secrets/";
/// Kept for objects that belong to no project.
constexpr std::string_view kReserved = "global";

/// What a WHATWG URL path leaves as it is. `\` becomes a slash in special schemes, `?` and `#` end the path,
/// and the others that are missing are percent-encoded.
constexpr bool stays_in_url_path(char c) {
  constexpr std::string_view kMarks = "!$%&'()*+,-./:;=@[]_|~^";
  return is_alnum(c) || kMarks.find(c) != std::string_view::npos;
}

/// `.` and `..` in any of the spellings that a URL parser takes for dots.
bool is_dot_segment(std::string_view segment) {
  std::size_t dots = 0;
  while (!segment.empty()) {
    if (segment.front() == '.') {
      segment.remove_prefix(1);
    } else if (segment.size() >= 3 && segment[0] == '%' && segment[1] == '2' && to_lower(segment[2]) == 'e') {
      segment.remove_prefix(3);
    } else {
      return false;
    }
    ++dots;
  }
  return dots == 1 || dots == 2;
}

struct Refusal {
  std::string reason;
  std::int64_t position = -1;
};

std::int64_t as_position(std::size_t position) {
  return static_cast<std::int64_t>(position);
}

/// The whole of what all path kinds share. `forbidden` names further characters.
std::optional<Refusal> refuse_path(std::string_view path, std::string_view forbidden) {
  if (path.empty() || path.front() != '/') return Refusal{"it does not start with '/'", 0};
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!stays_in_url_path(path[i]) || forbidden.find(path[i]) != std::string_view::npos) {
      return Refusal{character_name(path, i) + " is not allowed", as_position(i)};
    }
  }
  if (path == "/") return std::nullopt;
  std::size_t start = 1;
  while (start <= path.size()) {
    const std::size_t slash = path.find('/', start);
    const std::size_t end = slash == std::string_view::npos ? path.size() : slash;
    const std::string_view segment = path.substr(start, end - start);
    if (segment.empty()) return Refusal{"a segment is empty", as_position(start)};
    if (is_dot_segment(segment))
      return Refusal{"the segment " + in_quotes(segment) + " is a dot segment", as_position(start)};
    start = end + 1;
  }
  return std::nullopt;
}

tl::unexpected<Error> refused(std::string_view kind, std::string_view path, const Refusal& refusal) {
  return fail(InvalidPath{std::string(kind), std::string(path), refusal.reason, refusal.position});
}

}  // namespace

Result<void> check_project_id(std::string_view id) {
  const auto refuse = [&](std::string reason) {
    return fail(InvalidProjectId{std::string(id), std::move(reason)});
  };
  if (id.empty()) return refuse("it is empty");
  if (id.size() > static_cast<std::size_t>(kMaxProjectIdBytes)) {
    return refuse("it has " + std::to_string(id.size()) + " bytes");
  }
  for (std::size_t i = 0; i < id.size(); ++i) {
    const char c = id[i];
    const bool allowed = is_lower(c) || is_digit(c) || (i > 0 && (c == '_' || c == '-'));
    if (!allowed) return refuse(character_name(id, i) + " is not allowed at position " + std::to_string(i));
  }
  if (id == kReserved) return refuse("\"global\" is reserved");
  return {};
}

Result<void> check_stream_path(std::string_view path) {
  constexpr std::string_view kKind = "stream path";
  if (const auto refusal = refuse_path(path, "")) return refused(kKind, path, *refusal);
  // Streams of these two kinds have the narrower grammar of their kind, so that no second spelling slips in.
  if (path.starts_with(kSandboxes)) return check_sandbox_path(path);
  if (path.starts_with(kSecrets)) return check_secret_path(path);
  return {};
}

Result<void> check_sandbox_path(std::string_view path) {
  constexpr std::string_view kKind = "sandbox path";
  if (!path.starts_with(kSandboxes))
    return refused(kKind, path, {"it does not start with \"/sandboxes/\"", 0});
  const std::string_view name = path.substr(kSandboxes.size());
  if (name.empty()) return refused(kKind, path, {"the name is empty", as_position(kSandboxes.size())});
  if (const auto slash = path.find('/', kSandboxes.size()); slash != std::string_view::npos) {
    return refused(kKind, path, {"a name is one segment, without '/'", as_position(slash)});
  }
  if (const auto refusal = refuse_path(path, "")) return refused(kKind, path, *refusal);
  return {};
}

Result<void> check_secret_path(std::string_view path) {
  constexpr std::string_view kKind = "secret path";
  if (!path.starts_with(kSecrets)) return refused(kKind, path, {"it does not start with \"/secrets/\"", 0});
  if (const auto refusal = refuse_path(path, "%")) return refused(kKind, path, *refusal);
  return {};
}

Result<std::string> durable_object_name(const Identity& identity) {
  if (const auto checked = check_project_id(identity.project_id); !checked) return propagate(checked);
  if (const auto checked = check_stream_path(identity.path); !checked) return propagate(checked);
  std::string name = identity.project_id;
  name += kSeparator;
  name += identity.path;
  if (name.size() > static_cast<std::size_t>(kMaxNameBytes)) {
    const auto rest = static_cast<std::int64_t>(name.size() - identity.path.size());
    return fail(NameTooLong{"path", identity.path, kMaxNameBytes - rest});
  }
  return name;
}

Result<Identity> parse_durable_object_name(std::string_view name) {
  if (name.size() > static_cast<std::size_t>(kMaxNameBytes)) {
    return fail(NameTooLong{"name", std::string(name), kMaxNameBytes});
  }
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !name.substr(dot).starts_with(kSeparator)) {
    return fail(InvalidName{std::string(name), "it has no \".iterate\" after the project id"});
  }
  Identity identity{std::string(name.substr(0, dot)), std::string(name.substr(dot + kSeparator.size()))};
  if (const auto checked = check_project_id(identity.project_id); !checked) return propagate(checked);
  if (const auto checked = check_stream_path(identity.path); !checked) return propagate(checked);
  return identity;
}

Result<std::vector<std::string>> stream_ancestors(std::string_view path) {
  if (const auto checked = check_stream_path(path); !checked) return propagate(checked);
  std::vector<std::string> ancestors;
  if (path == "/") return ancestors;
  ancestors.emplace_back("/");
  for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    ancestors.emplace_back(path.substr(0, slash));
  }
  return ancestors;
}

Result<Identity> ensure_identity(const Identity* stored, const Identity& given) {
  const auto given_name = durable_object_name(given);
  if (!given_name) return propagate(given_name);
  if (stored == nullptr || *stored == given) return given;
  const auto stored_name = durable_object_name(*stored);
  return fail(IdentityMismatch{
      stored_name.value_or(stored->project_id + std::string(kSeparator) + stored->path), *given_name});
}

}  // namespace sandboxes
