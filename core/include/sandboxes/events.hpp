#pragma once

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// What a payload field may hold. Validation, JSON Schema and the docs all read this.
enum class FieldKind : std::uint8_t {
  sandbox_path,
  secret_path,
  stream_path,
  instance_type,
  config,  ///< `{ "instanceType": … }`
  sleep_after,
  boolean,
  env,          ///< object of strings
  env_changes,  ///< object of strings, or null to unset
  text,         ///< a string that is not empty
  http_method,
  http_scheme,
  port,
  decision,
  counts,  ///< object of whole numbers
  version,
  origins,  ///< array of strings
};

struct EventField {
  std::string_view name;
  FieldKind kind;
  bool required = true;
};

enum class EventType : std::uint8_t {
  create_requested,
  created,
  start_requested,
  sleep_requested,
  restart_requested,
  kill_requested,
  destroy_requested,
  started,
  stopped,
  destroyed,
  workspace_restored,
  backup_created,
  backup_failed,
  restore_failed,
  backup_expired,
  configured,
  stream_child_created,
  egress_decided,
  egress_summary,
  secret_updated,
  secret_deleted,
  secret_used,
};

/// One event type: the contract that everything that appends or folds shares.
struct EventRow {
  EventType id;
  std::string_view type;
  std::string_view stream;  ///< where it is appended, in words
  bool folded;              ///< whether a sandbox's projection reads it
  std::string_view description;
  std::string_view example;  ///< a payload that validates, as JSON
  std::span<const EventField> fields;
};

inline constexpr std::string_view event_prefix = "events.iterate.com/";

[[nodiscard]] std::span<const EventRow> event_rows();
[[nodiscard]] const EventRow* find_event(std::string_view type);
/// The row's wire name, for what builds events.
[[nodiscard]] std::string_view event_type_name(EventType type);

/// Refuses a payload that has an unknown field, lacks one, or holds a value that does not fit. `bytes` is the
/// length of the event as JSON text.
[[nodiscard]] Result<const EventRow*> validate_event(std::string_view type, simdjson::dom::element payload,
                                                     std::int64_t bytes);

/// The decisions an audit event may name.
inline constexpr std::array<std::string_view, 4> decision_kinds{"deny", "forward", "secret", "aiGateway"};

}  // namespace sandboxes
