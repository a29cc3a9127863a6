#include "../../core/src/json_text.hpp"

#include <simdjson.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "random.hpp"

using sandboxes::internal::canonical_json;
using sandboxes::internal::escape_json;
using sandboxes::internal::json_problem;
using sandboxes::internal::read_members;
using sandboxes::internal::unescape_json;
using sandboxes::tests::Random;

namespace {

constexpr std::array<std::string_view, 30> kTokens = {"{",
                                                      "}",
                                                      "[",
                                                      "]",
                                                      ",",
                                                      ":",
                                                      "\"a\"",
                                                      "\"\"",
                                                      "\"\\n\\u00e9\"",
                                                      "1",
                                                      "-0",
                                                      "0.5",
                                                      "1e-3",
                                                      "true",
                                                      "null",
                                                      "false",
                                                      " ",
                                                      "\n",
                                                      "\"é日🐳\"",
                                                      "\"k\":",
                                                      "01",
                                                      "1.",
                                                      "\"\\x\"",
                                                      "\"\xff\"",
                                                      "tru",
                                                      "\"k\":1,",
                                                      "{\"a\":",
                                                      "[1,2,3]",
                                                      "\"a long string of plain text\"",
                                                      "-"};

std::string random_json(Random& random, int depth) {
  switch (depth > 0 ? random.below(7) : random.below(5)) {
    case 0:
      return "null";
    case 1:
      return std::to_string(random.below(1000)) + (random.chance(3) ? ".5e-2" : "");
    case 2:
      return random.chance(2) ? "true" : "false";
    case 3:
      return "\"" +
             random.pick(
                 std::array<std::string_view, 5>{"", "a", "é\\u0041", "\\\"\\\\", "0123456789abcdef"}) +
             "\"";
    case 4:
      return random.chance(2) ? "{}" : "[ ]";
    case 5: {
      std::string out = "[";
      for (std::size_t i = random.below(4); i > 0; --i)
        out += random_json(random, depth - 1) + (i > 1 ? ", " : "");
      return out + "]";
    }
    default: {
      std::string out = "{";
      for (std::size_t i = random.below(4); i > 0; --i) {
        out += "\"" + std::string(1, static_cast<char>('a' + random.below(3))) +
               "\" : " + random_json(random, depth - 1);
        if (i > 1) out += ",";
      }
      return out + "}";
    }
  }
}

bool simdjson_accepts(const std::string& text) {
  simdjson::dom::parser parser;
  return parser.parse(text).error() == simdjson::SUCCESS;
}

}  // namespace

TEST_CASE("the text reader accepts what simdjson accepts") {
  Random random(4);
  const int count = sandboxes::tests::rounds(20'000, 1'000'000);
  int valid = 0;
  for (int i = 0; i < count; ++i) {
    std::string text;
    if (random.chance(2)) {
      text = random_json(random, 4);
      if (random.chance(3) && !text.empty()) text.erase(random.below(text.size()), 1);
    } else {
      for (std::size_t n = 1 + random.below(6); n > 0; --n) text += random.pick(kTokens);
    }
    INFO(text);
    const bool accepted = !json_problem(text);
    REQUIRE(accepted == simdjson_accepts(text));
    valid += accepted ? 1 : 0;
  }
  CHECK(valid > count / 8);
  CHECK(valid < count);
}

TEST_CASE("canonical JSON is its own canonical form and means the same") {
  Random random(5);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = random_json(random, 4);
    const std::string canonical = canonical_json(text);
    INFO(text << " -> " << canonical);
    REQUIRE_FALSE(json_problem(canonical));
    REQUIRE(canonical_json(canonical) == canonical);
  }
}

TEST_CASE("nesting has an end") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK_FALSE(json_problem(nested(sandboxes::internal::kMaxTextNesting)));
  CHECK(json_problem(nested(sandboxes::internal::kMaxTextNesting + 1)));
}

TEST_CASE("strings survive escaping") {
  for (const std::string& text :
       {std::string("plain"), std::string("\"\\/"), std::string("\x01\n\x1f", 3), std::string("é日🐳")}) {
    CHECK(unescape_json(escape_json(text)) == text);
  }
  CHECK(unescape_json("\\ud83d\\udc33") == "🐳");
  CHECK(unescape_json("\\ud83d").size() == 3);
}

TEST_CASE("only objects have members") {
  CHECK(read_members("{\"a\":1}", {0, 7})->size() == 1);
  for (const std::string_view text : {"[]", "1", "{", "{\"a\":1}x", ""})
    CHECK_FALSE(read_members(text, {0, text.size()}));
}
