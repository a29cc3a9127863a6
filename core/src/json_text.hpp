#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/url.hpp"

namespace sandboxes::internal {

/// Sixteen bytes that are compared at once: a language extension that GCC, Clang and Emscripten share, and
/// that is plain arithmetic where the machine has no vectors.
using Block = signed char __attribute__((vector_size(16)));
inline constexpr std::size_t kBlock = sizeof(Block);
constexpr Block every(signed char byte) {
  return Block{byte, byte, byte, byte, byte, byte, byte, byte,
               byte, byte, byte, byte, byte, byte, byte, byte};
}

/// All ones in the place of each byte that ends a run of plain string characters: a quote, a backslash, a
/// control or, being below zero, a byte beyond ASCII.
inline Block special_bytes(const char* bytes) {
  Block block;
  std::memcpy(&block, bytes, kBlock);
  return (block == every('"')) | (block == every('\\')) | (block < every(0x20));
}

/// How many bytes come before the first that is marked.
inline std::size_t bytes_before(Block marks) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t halves[2];
  std::memcpy(halves, &marks, kBlock);
  if (halves[0] != 0) return static_cast<std::size_t>(std::countr_zero(halves[0])) / 8;
  if (halves[1] != 0) return 8 + static_cast<std::size_t>(std::countr_zero(halves[1])) / 8;
  return kBlock;
}

inline bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// Deeper bodies are not read. V8 goes further, no API does.
inline constexpr std::size_t kMaxTextNesting = 512;

/// JSON as text, for bodies whose bytes have to stay as they are: everything is checked, nothing is built,
/// and what is found is named by its place. Accepts exactly what JSON.parse accepts of valid UTF-8.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) {}

  /// Reads one value of at most `deepest` levels, blanks around it included; false leaves `at()` where it is
  /// wrong.
  [[nodiscard]] bool value(std::size_t deepest = kMaxTextNesting);
  /// Reads one string at `at()`.
  [[nodiscard]] bool string() {
    if (!next_is('"')) return false;
    const std::size_t begin = at_ + 1;
    if (begin + kBlock <= text_.size()) {
      // Keys and many values end within one block.
      const std::size_t plain = bytes_before(special_bytes(text_.data() + begin));
      if (plain < kBlock && text_[begin + plain] == '"') {
        at_ = begin + plain + 1;
        return true;
      }
    }
    return long_string();
  }
  /// How many escapes the strings that were read so far have.
  [[nodiscard]] std::size_t escapes() const { return escapes_; }
  void skip_space() {
    // Most JSON has none.
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) > ' ') return;
    skip_more_space();
  }
  [[nodiscard]] bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void move_to(std::size_t at) { at_ = at; }

 private:
  void skip_more_space();
  bool nested(std::size_t deepest);
  bool long_string();
  bool key();
  bool number();
  bool digits();
  bool word(std::string_view expected);
  bool scalar();
  bool escape();
  bool non_ascii();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t escapes_ = 0;
};

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
