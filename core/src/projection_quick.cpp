#include <array>
#include <cstring>
#include <memory>

#include "projection_internal.hpp"
#include "sandboxes/limits.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using simdjson::internal::dom_parser_implementation;

/// Reads events by the index of structural characters that simdjson's first stage makes. Every member
/// function that gives false has met something unusual.
class QuickFold {
 public:
  QuickFold(ProjectionState state, std::string_view bytes) : state_(std::move(state)), bytes_(bytes) {}

  [[nodiscard]] bool run() {
    if (bytes_.size() > static_cast<std::size_t>(kMaxInputBytes)) return false;
    const auto made = simdjson::get_active_implementation()->create_dom_parser_implementation(
        bytes_.size(), static_cast<std::size_t>(kMaxNesting), scanner_);
    if (made != simdjson::SUCCESS) return false;
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes_.data());
    if (scanner_->stage1(data, bytes_.size(), simdjson::stage1_mode::regular) != simdjson::SUCCESS)
      return false;
    next_ = scanner_->structural_indexes.get();
    end_ = next_ + scanner_->n_structural_indexes;
    return events();
  }

  [[nodiscard]] ProjectionState take() { return std::move(state_); }

 private:
  [[nodiscard]] bool at(char c) const { return next_ < end_ && bytes_[*next_] == c; }

  [[nodiscard]] bool accept(char c) {
    if (!at(c)) return false;
    ++next_;
    return true;
  }

  [[nodiscard]] bool events() {
    if (!accept('[')) return false;
    if (accept(']')) return next_ == end_;
    do {
      if (!event()) return false;
    } while (accept(','));
    return accept(']') && next_ == end_;
  }

  [[nodiscard]] bool event() {
    type_ = {};
    offset_ = 0;
    payload_ = nullptr;
    if (!accept('{')) return false;
    do {
      if (!member()) return false;
    } while (accept(','));
    return accept('}') && fold();
  }

  [[nodiscard]] bool member() {
    std::string_view key;
    if (!plain_string(key) || !accept(':')) return false;
    if (key == "type") return plain_string(type_);
    if (key == "offset") return whole_number(offset_);
    if (key == "payload") payload_ = next_;
    return skip();
  }

  /// A string without escapes: most are, and those with any are for the parser.
  [[nodiscard]] bool plain_string(std::string_view& text) {
    if (!at('"')) return false;
    const char* start = bytes_.data() + *next_ + 1;
    const char* limit = bytes_.data() + bytes_.size();
    const char* stop = start;
    while (stop < limit && *stop != '"' && *stop != '\\') ++stop;
    if (stop == limit || *stop != '"') return false;
    text = {start, static_cast<std::size_t>(stop - start)};
    ++next_;
    return true;
  }

  [[nodiscard]] bool whole_number(std::int64_t& number) {
    constexpr std::size_t kMostDigits = 15;
    if (next_ >= end_) return false;
    const std::size_t start = *next_;
    std::size_t position = start;
    number = 0;
    while (position < bytes_.size() && is_digit(bytes_[position]) && position - start < kMostDigits) {
      number = number * 10 + (bytes_[position] - '0');
      ++position;
    }
    if (number < 1 || bytes_[start] == '0' || position == bytes_.size()) return false;
    const char after = bytes_[position];
    if (after != ',' && after != '}' && !is_space(after)) return false;
    ++next_;
    return true;
  }

  /// Any one value. Brackets must match and not be too deep; the rest is nobody's concern here.
  [[nodiscard]] bool skip() {
    constexpr int kDeepest = static_cast<int>(kMaxNesting) - 2;
    if (next_ >= end_) return false;
    std::uint64_t kinds = 0;  // one bit a level: whether it is an object
    int depth = 0;
    do {
      if (next_ >= end_) return false;
      switch (bytes_[*next_++]) {
        case '{':
          if (++depth > kDeepest) return false;
          kinds = kinds << 1 | 1U;
          break;
        case '[':
          if (++depth > kDeepest) return false;
          kinds <<= 1;
          break;
        case '}':
          if (depth-- == 0 || (kinds & 1U) == 0) return false;
          kinds >>= 1;
          break;
        case ']':
          if (depth-- == 0 || (kinds & 1U) != 0) return false;
          kinds >>= 1;
          break;
        case ',':
        case ':':
          if (depth == 0) return false;
          break;
        default:
          break;
      }
    } while (depth > 0);
    return true;
  }

  [[nodiscard]] bool fold() {
    if (offset_ == 0) return false;
    if (offset_ <= last_) return false;
    last_ = offset_;
    if (offset_ <= state_.offset) return !internal::was_missed(state_, offset_);
    std::optional<simdjson::dom::element> payload;
    if (payload_ != nullptr && internal::reads_payload(type_) && !parse_payload(payload)) return false;
    internal::advance(state_, offset_, type_, payload);
    return true;
  }

  [[nodiscard]] bool parse_payload(std::optional<simdjson::dom::element>& payload) {
    // The bytes go on after the payload, so its end has to be known: the value's brackets are skipped once
    // more.
    const std::uint32_t* const resume = next_;
    next_ = payload_;
    const std::size_t start = *next_;
    const bool whole = skip();
    const std::size_t stop = next_ < end_ ? *next_ : bytes_.size();
    next_ = resume;
    simdjson::dom::element element;
    if (!whole || parser_.parse(bytes_.data() + start, stop - start, false).get(element) != simdjson::SUCCESS)
      return false;
    payload = element;
    return true;
  }

  ProjectionState state_;
  std::string_view bytes_;
  std::unique_ptr<dom_parser_implementation> scanner_;
  simdjson::dom::parser parser_;
  const std::uint32_t* next_ = nullptr;
  const std::uint32_t* end_ = nullptr;
  std::int64_t last_ = 0;
  // Of the event that is being read.
  std::string_view type_;
  std::int64_t offset_ = 0;
  const std::uint32_t* payload_ = nullptr;
};

}  // namespace

bool fold_quickly(ProjectionState& state, std::string_view bytes) {
  QuickFold quick(state, bytes);
  if (!quick.run()) return false;
  state = quick.take();
  return true;
}

}  // namespace sandboxes
