#include <array>
#include <span>

#include "json_text.hpp"
#include "projection_internal.hpp"
#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using internal::JsonText;

/// A member that is looked for, and where the value of the last one of its name begins.
struct Sought {
  std::string_view key;
  std::optional<std::size_t> at = std::nullopt;
};

/// What a fold has to know of an event's type.
enum class Kind : std::uint8_t { other, started, stopped, destroyed, created, backup, configured };

Kind kind_of(std::string_view type) {
  if (!type.starts_with(internal::kSandboxPrefix)) return Kind::other;
  const std::string_view name = type.substr(internal::kSandboxPrefix.size());
  switch (name.size()) {
    case 7:
      if (name == "started") return Kind::started;
      if (name == "stopped") return Kind::stopped;
      return name == "created" ? Kind::created : Kind::other;
    case 9:
      return name == "destroyed" ? Kind::destroyed : Kind::other;
    case 10:
      return name == "configured" ? Kind::configured : Kind::other;
    case 14:
      return name == "backup-created" ? Kind::backup : Kind::other;
    default:
      return Kind::other;
  }
}

/// Reads events as text, in one pass that checks everything and builds nothing. Every member function that
/// gives false has met something unusual.
class QuickFold {
 public:
  QuickFold(ProjectionState state, std::string_view bytes)
      : state_(std::move(state)), bytes_(bytes), reader_(bytes) {}

  [[nodiscard]] bool run() {
    if (bytes_.size() > static_cast<std::size_t>(kMaxInputBytes) || !accept('[')) return false;
    if (accept(']')) return ended();
    do {
      if (!event()) return false;
    } while (accept(','));
    return accept(']') && ended();
  }

  [[nodiscard]] ProjectionState take() { return std::move(state_); }

 private:
  /// Within an event, which is within the batch.
  static constexpr auto kDeepest = static_cast<std::size_t>(kMaxNesting) - 2;

  [[nodiscard]] bool accept(char c) {
    reader_.skip_space();
    if (!reader_.next_is(c)) return false;
    reader_.move_to(reader_.at() + 1);
    return true;
  }

  [[nodiscard]] bool ended() {
    reader_.skip_space();
    return reader_.at() == bytes_.size();
  }

  [[nodiscard]] bool event() {
    type_ = {};
    offset_ = 0;
    payload_.reset();
    if (!accept('{')) return false;
    do {
      if (!member()) return false;
    } while (accept(','));
    return accept('}') && fold();
  }

  [[nodiscard]] bool member() {
    std::string_view key;
    if (!plain_string(key) || !accept(':')) return false;
    reader_.skip_space();
    if (key == "type") return plain_string(type_);
    if (key == "offset") return whole_number(offset_);
    if (key == "payload") {
      payload_ = reader_.at();
      const std::size_t before = reader_.escapes();
      if (!reader_.value(kDeepest)) return false;
      payload_end_ = reader_.at();
      payload_escapes_ = reader_.escapes() != before;
      return true;
    }
    return reader_.value(kDeepest);
  }

  /// A string without escapes: most are, and those with any are for the parser.
  [[nodiscard]] bool plain_string(std::string_view& text) {
    reader_.skip_space();
    const std::size_t begin = reader_.at() + 1;
    const std::size_t before = reader_.escapes();
    if (!reader_.string() || reader_.escapes() != before) return false;
    text = bytes_.substr(begin, reader_.at() - begin - 1);
    return true;
  }

  [[nodiscard]] bool whole_number(std::int64_t& number) {
    constexpr std::size_t kMostDigits = 15;
    const std::size_t start = reader_.at();
    std::size_t position = start;
    number = 0;
    while (position < bytes_.size() && is_digit(bytes_[position]) && position - start < kMostDigits) {
      number = number * 10 + (bytes_[position] - '0');
      ++position;
    }
    if (number < 1 || bytes_[start] == '0') return false;
    // What follows has to be a comma or a brace, which a fraction and a sixteenth digit are not.
    reader_.move_to(position);
    return true;
  }

  [[nodiscard]] bool fold() {
    if (offset_ == 0) return false;
    if (offset_ <= last_) return false;
    last_ = offset_;
    if (offset_ <= state_.offset) return !internal::was_missed(state_, offset_);
    const Kind kind = kind_of(type_);
    if (kind < Kind::created || !payload_) {
      internal::move_on(state_, offset_);
      if (state_.status != ProjectionStatus::destroyed) set_status(kind);
      return true;
    }
    if (payload_escapes_) return fold_parsed();
    const std::size_t resume = reader_.at();
    const bool folded = fold_text(kind);
    reader_.move_to(resume);
    return folded || fold_parsed();
  }

  void set_status(Kind kind) {
    if (kind == Kind::started) state_.status = ProjectionStatus::running;
    if (kind == Kind::stopped) state_.status = ProjectionStatus::stopped;
    if (kind == Kind::destroyed) state_.status = ProjectionStatus::destroyed;
    state_.running = state_.status == ProjectionStatus::running;
  }

  [[nodiscard]] bool fold_parsed() {
    simdjson::dom::element element;
    const char* const payload = bytes_.data() + *payload_;
    if (!parser_) parser_.emplace();
    if (parser_->parse(payload, payload_end_ - *payload_, false).get(element) != simdjson::SUCCESS)
      return false;
    internal::advance(state_, offset_, type_, element);
    return true;
  }

  /// As `internal::advance` does it with the parsed payload. False, before anything has changed, for a value
  /// that only the parser reads.
  [[nodiscard]] bool fold_text(Kind kind) {
    std::array<Sought, 3> sought{Sought{"env"}, Sought{"sleepAfter"}, Sought{"keepAlive"}};
    const bool configured = kind == Kind::configured;
    if (configured && (!find(*payload_, sought) || !reads_sleep_after(sought[1].at))) return false;
    internal::move_on(state_, offset_);
    if (state_.status == ProjectionStatus::destroyed) return true;
    if (configured) {
      fold_env(sought[0].at);
      fold_sleep_after(sought[1].at);
      fold_keep_alive(sought[2].at);
    } else if (kind == Kind::backup) {
      fold_backup();
    } else {
      fold_created();
    }
    return true;
  }

  /// Finds members of the object at `at`; of anything else none. The text was read before and is in order.
  bool find(std::size_t at, std::span<Sought> sought) {
    reader_.move_to(at);
    if (!accept('{') || accept('}')) return true;
    do {
      std::string_view key;
      if (!plain_string(key) || !accept(':')) return false;
      reader_.skip_space();
      for (Sought& one : sought) {
        if (one.key == key) one.at = reader_.at();
      }
      if (!reader_.value()) return false;
    } while (accept(','));
    return true;
  }

  [[nodiscard]] std::optional<std::string_view> text_of(std::size_t object, std::string_view key) {
    std::array<Sought, 1> sought{Sought{key}};
    if (!find(object, sought) || !sought[0].at) return std::nullopt;
    reader_.move_to(*sought[0].at);
    std::string_view text;
    return plain_string(text) ? std::optional(text) : std::nullopt;
  }

  void fold_created() {
    std::array<Sought, 1> config{Sought{"config"}};
    if (state_.instance_type || !find(*payload_, config) || !config[0].at) return;
    const auto type = text_of(*config[0].at, "instanceType");
    if (!type || type->empty()) return;
    state_.instance_type = std::string(*type);
    if (!state_.status) state_.status = ProjectionStatus::created;
  }

  void fold_backup() {
    const auto id = text_of(*payload_, "backupId");
    if (!id || id->empty()) return;
    if (!state_.last_backup_id) state_.last_backup_id.emplace();
    state_.last_backup_id->assign(*id);
  }

  void fold_env(std::optional<std::size_t> at) {
    if (!at) return;
    reader_.move_to(*at);
    if (!accept('{') || accept('}')) return;
    do {
      std::string_view key;
      if (!plain_string(key) || !accept(':')) return;
      reader_.skip_space();
      if (reader_.next_is('"')) {
        std::string_view value;
        if (!plain_string(value)) return;
        set_env(key, value);
      } else {
        const bool unset = reader_.next_is('n');
        if (!reader_.value()) return;
        if (const auto found = state_.env.find(key); unset && found != state_.env.end())
          state_.env.erase(found);
      }
    } while (accept(','));
  }

  void set_env(std::string_view key, std::string_view value) {
    const auto place = state_.env.lower_bound(key);
    if (place != state_.env.end() && place->first == key) {
      place->second.assign(value);
    } else {
      state_.env.emplace_hint(place, std::string(key), std::string(value));
    }
  }

  /// Numbers are for the parser.
  [[nodiscard]] bool reads_sleep_after(std::optional<std::size_t> at) const {
    return !at || !(bytes_[*at] == '-' || is_digit(bytes_[*at]));
  }

  void fold_sleep_after(std::optional<std::size_t> at) {
    if (!at) return;
    reader_.move_to(*at);
    std::string_view text;
    if (reader_.next_is('n')) {
      state_.sleep_after.reset();
    } else if (plain_string(text)) {
      state_.sleep_after = std::string(text);
    }
  }

  void fold_keep_alive(std::optional<std::size_t> at) {
    if (!at) return;
    const char first = bytes_[*at];
    if (first == 't' || first == 'f' || first == 'n') state_.keep_alive = first == 't';
  }

  ProjectionState state_;
  std::string_view bytes_;
  JsonText reader_;
  std::optional<simdjson::dom::parser> parser_;  ///< few batches need one
  std::int64_t last_ = 0;
  // Of the event that is being read.
  std::string_view type_;
  std::int64_t offset_ = 0;
  std::optional<std::size_t> payload_;
  std::size_t payload_end_ = 0;
  bool payload_escapes_ = false;
};

}  // namespace

bool fold_quickly(ProjectionState& state, std::string_view bytes) {
  QuickFold quick(state, bytes);
  if (!quick.run()) return false;
  state = quick.take();
  return true;
}

}  // namespace sandboxes
