#include "sandboxes/identity.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

constexpr std::string_view kName = "getSecret";
constexpr std::size_t kMaxFieldBytes = 256;

/// Reads one placeholder. A step that fails leaves the reason and the position; the first one wins.
class Parser {
 public:
  Parser(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  PlaceholderParse run() {
    at_ += kName.size();
    const std::size_t after_name = at_;
    skip_space();
    if (!next_is('(')) return NoPlaceholder{};
    const bool spaced = at_ != after_name;
    ++at_;
    skip_space();
    if (spaced && !next_is('"') && !next_is('\'') && !next_is('{')) return NoPlaceholder{};
    const bool read = next_is('{') ? options(true) : positional();
    if (!read || !close() || !check()) return std::move(problem_);
    return FoundPlaceholder{std::move(reference_), at_};
  }

 private:
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  bool refuse(std::string reason) { return refuse_at(at_, std::move(reason)); }

  bool refuse_at(std::size_t position, std::string reason) {
    problem_.position = position;
    problem_.reason = std::move(reason);
    return false;
  }

  bool expect(char c) {
    skip_space();
    if (!next_is(c)) {
      return refuse(std::string("'") + c + "' is expected, not " + character_name(text_, at_));
    }
    ++at_;
    return true;
  }

  /// A string in single or double quotes. Nothing is escaped in one: no path and no field needs it.
  bool quoted_string(std::string& out) {
    skip_space();
    if (!next_is('"') && !next_is('\'')) {
      return refuse("a quoted string is expected, not " + character_name(text_, at_));
    }
    const char quote = text_[at_++];
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_];
      if (c == '\\' || c == '"' || c == '\'' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        return refuse(character_name(text_, at_) + " may not stand in a quoted string");
      }
      ++at_;
    }
    if (at_ == text_.size()) return refuse("the quoted string does not end");
    out = std::string(text_.substr(begin, at_ - begin));
    ++at_;
    return true;
  }

  bool positional() {
    path_at_ = at_ + 1;
    if (!quoted_string(reference_.path)) return false;
    has_path_ = true;
    skip_space();
    if (!next_is(',')) return true;
    ++at_;
    skip_space();
    if (next_is(')')) return true;
    return options(false);
  }

  /// `{ key: "value", ... }`. As a second argument it holds `field` and nothing else.
  bool options(bool whole) {
    if (!expect('{')) return false;
    skip_space();
    if (next_is('}')) return refuse("the object is empty");
    for (;;) {
      if (!option(whole)) return false;
      skip_space();
      if (next_is(',')) {
        ++at_;
        skip_space();
      } else if (!next_is('}')) {
        return refuse("',' or '}' is expected, not " + character_name(text_, at_));
      }
      if (next_is('}')) break;
    }
    ++at_;
    skip_space();
    if (next_is(',')) ++at_;
    return true;
  }

  bool option(bool whole) {
    skip_space();
    const std::size_t key_at = at_;
    std::string key;
    if (next_is('"') || next_is('\'')) {
      if (!quoted_string(key)) return false;
    } else {
      while (at_ < text_.size() && is_alpha(text_[at_])) key += text_[at_++];
    }
    const std::string allowed = whole ? "path, field or platform" : "field";
    if (key.empty()) return refuse("a key (" + allowed + ") is expected, not " + character_name(text_, at_));
    if (!expect(':')) return false;
    std::string value;
    skip_space();
    const std::size_t value_at = at_ + 1;
    if (!quoted_string(value)) return false;
    if (key == "field" && !reference_.field) {
      field_at_ = value_at;
      reference_.field = std::move(value);
    } else if (whole && key == "path" && !has_path_ && !platform_) {
      path_at_ = value_at;
      has_path_ = true;
      reference_.path = std::move(value);
    } else if (whole && key == "platform" && !has_path_ && !platform_) {
      path_at_ = value_at;
      platform_ = true;
      reference_.path = std::move(value);
    } else {
      return refuse_at(key_at, "the key " + in_quotes(key) +
                                   " is unknown, doubled or does not go with the others; " + allowed +
                                   " is allowed");
    }
    return true;
  }

  bool close() { return expect(')'); }

  bool check() {
    if (platform_) {
      reference_.kind = ReferenceKind::platform;
      if (reference_.field) return refuse_at(field_at_, "\"field\" does not go with \"platform\"");
      if (!dotted_name(reference_.path)) return refuse_at(path_at_, "a platform key is a dotted name");
      return true;
    }
    if (!has_path_) return refuse("there is no path");
    if (const auto valid = check_secret_path(reference_.path); !valid) {
      problem_.wrong_path = true;
      problem_.path = reference_.path;
      return refuse_at(path_at_, describe(valid.error()).message);
    }
    if (reference_.field && !good_field(*reference_.field)) {
      return refuse_at(field_at_, "a field is 1 to 256 bytes of names joined by single dots");
    }
    return true;
  }

  static bool good_field(std::string_view field) {
    return !field.empty() && field.size() <= kMaxFieldBytes && field.front() != '.' && field.back() != '.' &&
           field.find("..") == std::string_view::npos;
  }

  static bool dotted_name(std::string_view name) {
    for (const char c : name) {
      if (!is_alnum(c) && c != '_' && c != '-' && c != '.') return false;
    }
    return good_field(name);
  }

  std::string_view text_;
  std::size_t at_;
  std::size_t path_at_ = 0;
  std::size_t field_at_ = 0;
  bool has_path_ = false;
  bool platform_ = false;
  Reference reference_;
  MalformedPlaceholder problem_;
};

}  // namespace

std::string reference_key(const Reference& reference) {
  std::string key = reference.kind == ReferenceKind::secret ? "secret:" : "platform:";
  key += reference.path;
  if (reference.field) key += "#" + *reference.field;
  return key;
}

std::size_t find_placeholder_name(std::string_view text, std::size_t from) {
  // The capital is the rarest of its letters.
  constexpr std::size_t kCapital = kName.find('S');
  for (std::size_t at = text.find('S', from); at != std::string_view::npos; at = text.find('S', at + 1)) {
    if (at >= from + kCapital && text.substr(at - kCapital, kName.size()) == kName) return at - kCapital;
  }
  return std::string_view::npos;
}

PlaceholderParse parse_placeholder(std::string_view text, std::size_t position) {
  return Parser(text, position).run();
}

bool mentions_placeholder(std::string_view text) {
  for (std::size_t at = find_placeholder_name(text, 0); at != std::string_view::npos;
       at = find_placeholder_name(text, at + 1)) {
    if (!std::holds_alternative<NoPlaceholder>(parse_placeholder(text, at))) return true;
  }
  return false;
}

}  // namespace sandboxes
