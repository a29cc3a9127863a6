// What the agent reads before it knows who sends: message envelopes, write bodies, port lines, queries,
// base64.
#include <cstdio>
#include <cstdlib>

#include "sandboxd/agent/message.hpp"
#include "sandboxd/agent/text.hpp"
#include "sandboxd/agent/write_body.hpp"

namespace {

using namespace sandboxd::agent;

void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

/// Where the quick reader of write bodies and the JSON library both accept, they read the same.
void check_write_body(std::string_view input) {
  std::string body(input);
  const auto quick = parse_write_body(body);
  const Json slow = Json::parse(input, nullptr, false);
  if (slow.is_discarded() || !slow.is_object()) return;
  require(quick.has_value(), "an object that JSON accepts is accepted");
  std::size_t contents = 0;
  for (std::size_t at = input.find("\"content\""); at != std::string_view::npos;
       at = input.find("\"content\"", at + 1)) {
    ++contents;
  }
  const auto content = slow.find("content");
  if (contents != 1 || content == slow.end() || !content->is_string()) return;
  require(quick->has_content && quick->content == content->get_ref<const std::string&>(),
          "the content is the same");
}

void check_message(std::string_view input) {
  const auto message = split_message(input);
  const Json slow = Json::parse(input, nullptr, false);
  if (slow.is_discarded() || !slow.is_object() || slow.empty()) return;
  require(message.has_value(), "an object that JSON accepts is taken apart");
  if (message->body.empty()) return;
  require(!Json::parse(message->body, nullptr, false).is_discarded(), "the body of a valid message is valid");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_write_body(input);
  check_message(input);
  if (const auto port = parse_port_line(input)) require(*port != 0, "a port is not 0");
  for (const auto& [key, value] : parse_query(input)) require(!key.empty(), "a query field has a name");
  if (const auto bytes = base64_decode(input)) {
    const auto again = base64_decode(base64_encode(*bytes));
    require(again && *again == *bytes, "base64 comes back");
  }
  std::string text = to_utf8(std::string(input));
  require(is_utf8(text), "what is made text is text");
  Utf8Decoder pieces;
  std::string joined;
  for (const char byte : input) joined += pieces.feed(std::string_view(&byte, 1));
  joined += pieces.finish();
  require(is_utf8(joined), "text in pieces is text");
  std::string literal;
  append_json_string(literal, text);
  const Json read = Json::parse(literal, nullptr, false);
  require(read.is_string() && read.get_ref<const std::string&>() == text, "a JSON string comes back");
  const std::size_t cut = input.find('\n');
  if (cut != std::string_view::npos && size < 256)
    (void)glob_match(input.substr(0, cut), input.substr(cut + 1));
  return 0;
}
