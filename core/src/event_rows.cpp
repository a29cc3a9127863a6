#include "sandboxes/events.hpp"

namespace sandboxes {

namespace {

using Kind = FieldKind;

constexpr std::array kCreateRequested{
    EventField{"path", Kind::sandbox_path}, EventField{"instanceType", Kind::instance_type},
    EventField{"sleepAfter", Kind::sleep_after, false}, EventField{"keepAlive", Kind::boolean, false},
    EventField{"env", Kind::env, false}};
constexpr std::array kCreated{EventField{"config", Kind::config}};
constexpr std::array kBackup{EventField{"backupId", Kind::text}};
constexpr std::array kFailed{EventField{"error", Kind::text}, EventField{"backupId", Kind::text, false}};
constexpr std::array kStopped{EventField{"reason", Kind::text, false}};
constexpr std::array kConfigured{EventField{"env", Kind::env_changes, false},
                                 EventField{"sleepAfter", Kind::sleep_after, false},
                                 EventField{"keepAlive", Kind::boolean, false}};
constexpr std::array kChild{EventField{"path", Kind::stream_path}};
constexpr std::array kDecided{
    EventField{"method", Kind::http_method}, EventField{"scheme", Kind::http_scheme},
    EventField{"host", Kind::text},          EventField{"port", Kind::port},
    EventField{"path", Kind::text},          EventField{"decision", Kind::decision},
    EventField{"ruleId", Kind::text, false}, EventField{"secretPath", Kind::secret_path, false}};
constexpr std::array kSummary{EventField{"counts", Kind::counts}};
constexpr std::array kSecretUpdated{EventField{"version", Kind::version},
                                    EventField{"origins", Kind::origins}};
constexpr std::array kSecretUsed{EventField{"host", Kind::text}};
constexpr std::span<const EventField> kNone;

constexpr std::string_view kOwn = "the sandbox's own";
constexpr std::string_view kSecret = "the secret's own";

constexpr std::array<EventRow, 22> kRows{{
    {EventType::create_requested, "events.iterate.com/sandbox/create-requested", "/sandboxes", false,
     "Claims a path for a new sandbox. There is one for each path, ever.",
     R"({"path":"/sandboxes/main","instanceType":"basic","sleepAfter":"10m","keepAlive":false,"env":{"NODE_ENV":"production"}})",
     kCreateRequested},
    {EventType::created, "events.iterate.com/sandbox/created", kOwn, true,
     "The sandbox exists from here on; what it holds never changes.",
     R"({"config":{"instanceType":"basic"}})", kCreated},
    {EventType::start_requested, "events.iterate.com/sandbox/start-requested", kOwn, false,
     "Somebody asked for the sandbox to be started.", "{}", kNone},
    {EventType::sleep_requested, "events.iterate.com/sandbox/sleep-requested", kOwn, false,
     "Somebody, or the idle timer, asked for the sandbox to be put to sleep.", "{}", kNone},
    {EventType::restart_requested, "events.iterate.com/sandbox/restart-requested", kOwn, false,
     "Somebody asked for the sandbox to be restarted; it completes as stopped and started.", "{}", kNone},
    {EventType::kill_requested, "events.iterate.com/sandbox/kill-requested", kOwn, false,
     "Somebody asked for the sandbox's processes to be killed.", "{}", kNone},
    {EventType::destroy_requested, "events.iterate.com/sandbox/destroy-requested", kOwn, false,
     "Somebody asked for the sandbox to be destroyed.", "{}", kNone},
    {EventType::started, "events.iterate.com/sandbox/started", kOwn, true, "The container runs.", "{}",
     kNone},
    {EventType::stopped, "events.iterate.com/sandbox/stopped", kOwn, true,
     "The container is gone; the sandbox sleeps. One that ended without being asked to has the reason, where "
     "it is known.",
     R"({"reason":"killed by signal 9"})", kStopped},
    {EventType::destroyed, "events.iterate.com/sandbox/destroyed", kOwn, true,
     "The sandbox is gone for good and its name is retired.", "{}", kNone},
    {EventType::workspace_restored, "events.iterate.com/sandbox/workspace-restored", kOwn, false,
     "/workspace was restored from a snapshot.", R"({"backupId":"b-1"})", kBackup},
    {EventType::backup_created, "events.iterate.com/sandbox/backup-created", kOwn, true,
     "A snapshot of /workspace was taken; it is the newest good one.", R"({"backupId":"b-1"})", kBackup},
    {EventType::backup_failed, "events.iterate.com/sandbox/backup-failed", kOwn, false,
     "A snapshot could not be taken; the handle still points to the one before.",
     R"({"error":"the bucket refused the upload","backupId":"b-2"})", kFailed},
    {EventType::restore_failed, "events.iterate.com/sandbox/restore-failed", kOwn, false,
     "A snapshot could not be restored; the handle still points to it.",
     R"({"error":"the archive is damaged","backupId":"b-1"})", kFailed},
    {EventType::backup_expired, "events.iterate.com/sandbox/backup-expired", kOwn, false,
     "The newest snapshot was too old to restore; the workspace starts empty.", R"({"backupId":"b-1"})",
     kBackup},
    {EventType::configured, "events.iterate.com/sandbox/configured", kOwn, true,
     "Settings changed: keys that are given merge into the stored ones, null unsets a variable.",
     R"({"env":{"NODE_ENV":"test","OLD":null},"sleepAfter":"1h","keepAlive":true})", kConfigured},
    {EventType::stream_child_created, "events.iterate.com/stream/child-created", "every ancestor", false,
     "The first event was appended to a stream below this one.", R"({"path":"/sandboxes/main"})", kChild},
    {EventType::egress_decided, "events.iterate.com/egress/decided", "/egress", false,
     "The door decided about one request.",
     R"({"method":"GET","scheme":"https","host":"api.example.com","port":443,"path":"/v1/items","decision":"forward","ruleId":"allow-api","secretPath":"/secrets/api"})",
     kDecided},
    {EventType::egress_summary, "events.iterate.com/egress/summary", "/egress", false,
     "How many requests the door decided about since the last summary, by decision.",
     R"({"counts":{"forward":120,"deny":3}})", kSummary},
    {EventType::secret_updated, "events.iterate.com/secret/updated", kSecret, false,
     "The secret has new material. The material is not here and nowhere in a stream.",
     R"({"version":1,"origins":["https://api.example.com"]})", kSecretUpdated},
    {EventType::secret_deleted, "events.iterate.com/secret/deleted", kSecret, false,
     "The secret's material is gone.", "{}", kNone},
    {EventType::secret_used, "events.iterate.com/secret/used", kSecret, false,
     "The secret was put into a request to this host.", R"({"host":"api.example.com"})", kSecretUsed},
}};

consteval bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].id != static_cast<EventType>(i) || !kRows[i].type.starts_with(event_prefix)) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "each row stands at the index of its type");

}  // namespace

std::span<const EventRow> event_rows() {
  return kRows;
}

std::string_view event_type_name(EventType type) {
  return kRows[static_cast<std::size_t>(type)].type;
}

const EventRow* find_event(std::string_view type) {
  for (const EventRow& row : kRows) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace sandboxes
