#include "sandboxes/placeholders.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "random.hpp"
#include "sandboxes/strings.hpp"

using namespace sandboxes;
using sandboxes::tests::Random;

namespace {

constexpr std::string_view kKey = "secret:/secrets/a";
constexpr std::string_view kFieldKey = "secret:/secrets/a#b.c";

constexpr std::array<std::string_view, 8> kSpellings = {
    "getSecret(\"/secrets/a\")",
    "getSecret('/secrets/a',)",
    "getSecret( \"/secrets/a\" , { field : 'b.c' , } )",
    "getSecret({path:\"/secrets/a\"})",
    "getSecret({ \"field\": \"b.c\", path: '/secrets/a', })",
    "getSecret (\t'/secrets/a' )",
    "getSecret({ path: \"/secrets/a\", 'field': \"b.c\" },)",
    "getSecret(\"/secrets/a\",{field:\"b.c\"})",
};
constexpr std::array<std::string_view, 10> kLiterals = {"",  "Bearer ",    " ", "getSecret", "a=1; ",
                                                        "%", "getSecret ", "é", "\"",        ")"};
constexpr std::array<std::string_view, 8> kValues = {
    "v", "", "a b", "a/b?c#d%41", "pä🔑", "\"quoted\\\"", "..a", "x:y@z"};

std::string random_text(Random& random) {
  std::string text;
  const std::size_t parts = random.below(5);
  for (std::size_t i = 0; i < parts; ++i)
    text += random.chance(2) ? random.pick(kSpellings) : random.pick(kLiterals);
  return text;
}

/// Percent-escapes what has to be escaped in a path, and now and then something else.
std::string random_path(Random& random) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string path = "/k/";
  for (const char c : random_text(random)) {
    const bool must = !is_alnum(c) && std::string_view("()'/:,.").find(c) == std::string_view::npos;
    if (must || random.chance(8)) {
      path += '%';
      path += kDigits[static_cast<unsigned char>(c) >> 4];
      path += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      path += c;
    }
  }
  return path + "/x";
}

}  // namespace

TEST_CASE("what was substituted holds no placeholder any more") {
  Random random(1);
  const int count = sandboxes::tests::rounds(20'000, 1'000'000);
  int substituted = 0;
  for (int i = 0; i < count; ++i) {
    const std::string url = "https://api.example.com" + random_path(random);
    const std::string header = random_text(random);
    const std::string basic = "Basic " + base64_encode(random_text(random));
    const std::string first = random.pick(kValues);
    const std::string second = random.pick(kValues);
    RequestView request{"POST", url, {{"x-auth", header}, {"authorization", basic}}, {}};
    const auto before = scan_placeholders(request);
    // Two literals can make the beginning of a placeholder; that is refused, and rightly.
    if (!before) continue;
    const auto after = substitute_placeholders(request, {{kKey, first}, {kFieldKey, second}});
    INFO(url << " | " << header << " | " << basic);
    REQUIRE(after);
    ++substituted;
    HeaderList headers;
    for (const auto& [name, value] : after->headers) headers.emplace_back(name, value);
    const auto again = scan_placeholders({"POST", after->url, headers, {}});
    REQUIRE(again);
    REQUIRE(again->sites.empty());
    if (before->sites.empty()) {
      REQUIRE(after->url == url);
      REQUIRE(after->headers[0].second == header);
      REQUIRE(after->headers[1].second == basic);
    }
  }
  CHECK(substituted > count / 4);
}

TEST_CASE("substitution keeps every byte around a placeholder") {
  Random random(2);
  for (int i = 0; i < 2'000; ++i) {
    const std::string before = random.chance(2) ? "Bearer  " : "é%2F;";
    const std::string after = random.chance(2) ? " tail\t" : "";
    const std::string header = before + random.pick(kSpellings) + after;
    const auto out = substitute_placeholders({"GET", "https://a.example/", {{"x", header}}, {}},
                                             {{kKey, "V"}, {kFieldKey, "V"}});
    REQUIRE(out);
    REQUIRE(out->headers[0].second == before + "V" + after);
  }
}

TEST_CASE("no cut of a placeholder is one") {
  for (const auto spelling : kSpellings) {
    for (std::size_t length = spelling.find('(') + 1; length < spelling.size(); ++length) {
      const std::string_view cut = spelling.substr(0, length);
      INFO(cut);
      CHECK_FALSE(std::holds_alternative<FoundPlaceholder>(parse_placeholder(cut, 0)));
    }
  }
}
