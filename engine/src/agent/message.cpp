#include "sandboxd/agent/message.hpp"

#include <charconv>

#include "sandboxd/agent/error.hpp"

namespace sandboxd::agent {
namespace {

/// Walks over JSON values without reading them.
class Skipper {
 public:
  explicit Skipper(std::string_view text) : text_(text) {}

  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool take(char expected) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    blanks();
    return at_ == text_.size();
  }

  /// The literal with its quotes.
  std::optional<std::string_view> string() {
    blanks();
    if (at_ >= text_.size() || text_[at_] != '"') return std::nullopt;
    const std::size_t start = at_++;
    while (at_ < text_.size()) {
      at_ = text_.find_first_of("\"\\", at_);
      if (at_ == std::string_view::npos) break;
      if (text_[at_] == '"') return text_.substr(start, ++at_ - start);
      at_ += 2;
    }
    at_ = text_.size();
    return std::nullopt;
  }

  std::optional<std::string_view> value() {
    blanks();
    const std::size_t start = at_;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char next = text_[at_];
      if (next == '"') {
        if (!string()) return std::nullopt;
      } else if (next == '{' || next == '[') {
        ++depth;
        ++at_;
      } else if (next == '}' || next == ']') {
        if (depth == 0) break;
        --depth;
        ++at_;
      } else if (next == ',' && depth == 0) {
        break;
      } else {
        ++at_;
      }
      if (depth == 0 && (next == '"' || next == '}' || next == ']')) break;
    }
    if (depth != 0 || at_ == start) return std::nullopt;
    return text_.substr(start, at_ - start);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string text_of(std::string_view literal) {
  const Json value = Json::parse(literal, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

std::optional<TransportMessage> split_message(std::string_view text) {
  TransportMessage message;
  Skipper skipper(text);
  if (!skipper.take('{')) return std::nullopt;
  do {
    const auto key = skipper.string();
    if (!key || !skipper.take(':')) return std::nullopt;
    const auto value = skipper.value();
    if (!value) return std::nullopt;
    if (*key == "\"type\"") message.type = text_of(*value);
    if (*key == "\"id\"") message.id = text_of(*value);
    if (*key == "\"method\"") message.method = text_of(*value);
    if (*key == "\"path\"") message.path = text_of(*value);
    if (*key == "\"body\"") message.body = *value;
  } while (skipper.take(','));
  if (!skipper.take('}') || !skipper.at_end()) return std::nullopt;
  return message;
}

std::optional<std::uint16_t> parse_port_line(std::string_view line) {
  constexpr std::string_view kWord = "PORT ";
  if (!line.starts_with(kWord)) return std::nullopt;
  line.remove_prefix(kWord.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), port);
  if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace sandboxd::agent
