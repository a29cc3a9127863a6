#include "sandboxes/projection.hpp"

#include <algorithm>
#include <array>

#include "ordering.hpp"
#include "projection_internal.hpp"

namespace sandboxes {

namespace {

using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::array<std::string_view, 4> kStatusNames{"created", "running", "stopped", "destroyed"};
constexpr double kLargestOffset = 9007199254740991.0;

/// The three fields of an event that a fold reads.
struct Entry {
  std::int64_t offset;
  std::string_view type;
  std::optional<element> payload;
};

std::optional<std::string_view> text_of(element value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? std::optional(text) : std::nullopt;
}

std::optional<element> member(element value, std::string_view key) {
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) return std::nullopt;
  std::optional<element> found;
  for (const auto field : fields) {
    if (field.key == key) found = field.value;
  }
  return found;
}

std::optional<std::int64_t> offset_of(element value) {
  std::int64_t whole = 0;
  if (value.get_int64().get(whole) == simdjson::SUCCESS) {
    return whole > 0 && static_cast<double>(whole) <= kLargestOffset ? std::optional(whole) : std::nullopt;
  }
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS || !(number >= 1 && number <= kLargestOffset)) {
    return std::nullopt;
  }
  whole = static_cast<std::int64_t>(number);
  return static_cast<double>(whole) == number ? std::optional(whole) : std::nullopt;
}

/// One walk over the event's keys: this is the hot loop of a bulk fold.
Result<Entry> read_entry(element value) {
  object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS)
    return fail(InvalidEvent{"", "", "is not an object"});
  Entry entry{0, {}, std::nullopt};
  std::optional<element> offset;
  for (const auto field : fields) {
    switch (field.key.size()) {
      case 4:
        if (field.key == "type") entry.type = text_of(field.value).value_or("");
        break;
      case 6:
        if (field.key == "offset") offset = field.value;
        break;
      case 7:
        if (field.key == "payload") entry.payload = field.value;
        break;
      default:
        break;
    }
  }
  const auto position = offset ? offset_of(*offset) : std::nullopt;
  if (!position)
    return fail(InvalidEvent{std::string(entry.type), "offset", "must be a whole number from 1"});
  entry.offset = *position;
  return entry;
}

void fold_created(ProjectionState& state, element payload) {
  if (state.instance_type) return;
  const auto config = member(payload, "config");
  const auto name = config ? member(*config, "instanceType") : std::nullopt;
  const auto type = name ? text_of(*name) : std::nullopt;
  if (!type || type->empty()) return;
  state.instance_type = std::string(*type);
  // A certificate that arrives late does not pull a running sandbox back.
  if (!state.status) state.status = ProjectionStatus::created;
}

void fold_backup(ProjectionState& state, element payload) {
  const auto id = member(payload, "backupId");
  const auto text = id ? text_of(*id) : std::nullopt;
  if (text && !text->empty()) state.last_backup_id = std::string(*text);
}

void fold_env(ProjectionState& state, element changes) {
  object fields;
  if (changes.get_object().get(fields) != simdjson::SUCCESS) return;
  for (const auto field : fields) {
    if (const auto text = text_of(field.value)) {
      state.env.insert_or_assign(std::string(field.key), std::string(*text));
    } else if (field.value.is_null()) {
      if (const auto found = state.env.find(field.key); found != state.env.end()) state.env.erase(found);
    }
  }
}

void fold_sleep_after(ProjectionState& state, element value) {
  double seconds = 0;
  if (const auto text = text_of(value)) {
    state.sleep_after = std::string(*text);
  } else if (value.get_double().get(seconds) == simdjson::SUCCESS) {
    state.sleep_after = seconds;
  } else if (value.is_null()) {
    state.sleep_after.reset();
  }
}

void fold_configured(ProjectionState& state, element payload) {
  if (const auto env = member(payload, "env")) fold_env(state, *env);
  if (const auto sleep_after = member(payload, "sleepAfter")) fold_sleep_after(state, *sleep_after);
  if (const auto keep_alive = member(payload, "keepAlive")) {
    bool flag = false;
    if (keep_alive->get_bool().get(flag) == simdjson::SUCCESS || keep_alive->is_null())
      state.keep_alive = flag;
  }
}

void set_status(ProjectionState& state, ProjectionStatus status) {
  state.status = status;
  state.running = status == ProjectionStatus::running;
}

/// Reads a batch whole before anything is folded, so that a bad one changes nothing.
Result<std::vector<Entry>> read_batch(const ProjectionState& state, simdjson::dom::array events) {
  std::vector<Entry> entries;
  entries.reserve(events.size());
  bool sorted = true;
  for (const element value : events) {
    const auto entry = read_entry(value);
    if (!entry) return propagate(entry);
    if (entry->offset <= state.offset && internal::was_missed(state, entry->offset)) {
      return fail(OutOfOrder{entry->offset, state.offset});
    }
    sorted = sorted && (entries.empty() || entries.back().offset <= entry->offset);
    entries.push_back(*entry);
  }
  if (!sorted) {
    internal::order(entries,
                    [](const Entry& left, const Entry& right) { return left.offset < right.offset; });
  }
  return entries;
}

}  // namespace

namespace internal {

bool was_missed(const ProjectionState& state, std::int64_t offset) {
  return std::any_of(state.missing.begin(), state.missing.end(),
                     [&](const auto& range) { return offset >= range.first && offset <= range.second; });
}

void advance(ProjectionState& state, std::int64_t offset, std::string_view type,
             const std::optional<element>& payload) {
  move_on(state, offset);
  if (state.status == ProjectionStatus::destroyed || !type.starts_with(kSandboxPrefix)) return;
  const std::string_view name = type.substr(kSandboxPrefix.size());
  if (name == "started") return set_status(state, ProjectionStatus::running);
  if (name == "stopped") return set_status(state, ProjectionStatus::stopped);
  if (name == "destroyed") return set_status(state, ProjectionStatus::destroyed);
  if (!payload) return;
  if (name == "created") return fold_created(state, *payload);
  if (name == "backup-created") return fold_backup(state, *payload);
  if (name == "configured") return fold_configured(state, *payload);
}

}  // namespace internal

std::string_view status_name(ProjectionStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

std::optional<ProjectionStatus> parse_status(std::string_view name) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == name) return static_cast<ProjectionStatus>(i);
  }
  return std::nullopt;
}

Result<void> fold(ProjectionState& state, simdjson::dom::array events) {
  const auto entries = read_batch(state, events);
  if (!entries) return propagate(entries);
  for (const Entry& entry : *entries) {
    if (entry.offset <= state.offset) continue;
    internal::advance(state, entry.offset, entry.type, entry.payload);
  }
  return {};
}

}  // namespace sandboxes
