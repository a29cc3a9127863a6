#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/url.hpp"

namespace sandboxes::internal {

/// JSON as text, for bodies whose bytes have to stay as they are: everything is checked, nothing is built,
/// and what is found is named by its place. Accepts exactly what JSON.parse accepts of valid UTF-8.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) {}

  /// Reads one value, blanks around it included; false leaves `at()` where it is wrong.
  [[nodiscard]] bool value();
  /// Reads one string at `at()`.
  [[nodiscard]] bool string();
  void skip_space();
  [[nodiscard]] bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void move_to(std::size_t at) { at_ = at; }

 private:
  bool key();
  bool number();
  bool digits();
  bool word(std::string_view expected);
  bool scalar();
  bool escape();
  bool non_ascii();

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Deeper bodies are not read. V8 goes further, no API does.
inline constexpr std::size_t kMaxTextNesting = 512;

struct JsonMember {
  std::string key;  ///< unescaped
  Range key_range;  ///< with its quotes
  Range value;
};

/// Where the text is not JSON; nothing when it is.
[[nodiscard]] std::optional<std::size_t> json_problem(std::string_view text);
/// The members of the object in `range`, in order and with repeats; nothing when it is no object. The range
/// must hold valid JSON, or be the whole of a text that may not.
[[nodiscard]] std::optional<std::vector<JsonMember>> read_members(std::string_view text, Range range);
/// The bytes a JSON string stands for, given what lies between its quotes. Lone surrogates become their three
/// generalised UTF-8 bytes, so that two different strings stay different.
[[nodiscard]] std::string unescape_json(std::string_view inner);
/// The text between the quotes of a JSON string that stands for these bytes.
[[nodiscard]] std::string escape_json(std::string_view bytes);
/// The one text of all JSON texts that mean the same: no blanks, keys sorted, the last of equal keys, strings
/// escaped in one way. Numbers keep their digits: a double cannot hold them all.
[[nodiscard]] std::string canonical_json(std::string_view valid_json);

}  // namespace sandboxes::internal
