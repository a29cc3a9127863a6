#include <algorithm>

#include "json_text.hpp"
#include "ordering.hpp"

namespace sandboxes::internal {

namespace {

/// Rewrites one value at the reader's place.
class Canonical {
 public:
  explicit Canonical(std::string_view text) : text_(text) {}

  std::string run(Range range) {
    std::size_t at = range.begin;
    while (at < range.end && is_json_space(text_[at])) ++at;
    if (text_[at] == '{') return object({at, range.end});
    if (text_[at] == '[') return array({at, range.end});
    std::size_t end = range.end;
    while (end > at && is_json_space(text_[end - 1])) --end;
    const std::string_view token = text_.substr(at, end - at);
    if (text_[at] == '"') return string(unescape_json(token.substr(1, token.size() - 2)));
    return std::string(token);
  }

 private:
  static std::string string(std::string_view bytes) { return '"' + escape_json(bytes) + '"'; }

  std::string object(Range range) {
    auto members = read_members(text_, range).value_or(std::vector<JsonMember>{});
    order(members, [](const JsonMember& a, const JsonMember& b) { return a.key < b.key; });
    std::string out = "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i + 1 < members.size() && members[i + 1].key == members[i].key) continue;
      if (out.size() > 1) out += ',';
      out += string(members[i].key) + ':' + run(members[i].value);
    }
    return out + '}';
  }

  std::string array(Range range) {
    JsonText reader(text_.substr(0, range.end));
    reader.move_to(range.begin + 1);
    reader.skip_space();
    std::string out = "[";
    while (!reader.next_is(']')) {
      const std::size_t begin = reader.at();
      if (!reader.value()) break;
      if (out.size() > 1) out += ',';
      out += run({begin, reader.at()});
      if (reader.next_is(',')) reader.move_to(reader.at() + 1);
    }
    return out + ']';
  }

  std::string_view text_;
};

}  // namespace

std::string canonical_json(std::string_view valid_json) {
  return Canonical(valid_json).run({0, valid_json.size()});
}

}  // namespace sandboxes::internal
