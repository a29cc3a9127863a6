#include "sandboxes/strings.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <utility>

using namespace sandboxes;

TEST_CASE("numbers are told as they are") {
  for (const auto& [number, text] : {std::pair<double, const char*>{1e300, "1e300"},
                                     {-2.5e20, "-2.5e20"},
                                     {1.7976931348623157e308, "1.8e308"},
                                     {9.999e15, "1e16"},
                                     {std::numeric_limits<double>::quiet_NaN(), "NaN"},
                                     {-std::numeric_limits<double>::infinity(), "-Infinity"},
                                     {-1, "-1"},
                                     {1.5, "1.5"}}) {
    CHECK(number_text(number) == text);
  }
}

TEST_CASE("base64 goes there and back, and has one spelling") {
  CHECK(base64_encode("") == "");
  CHECK(base64_encode("f") == "Zg==");
  CHECK(base64_encode("foobar") == "Zm9vYmFy");
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
  for (const auto* text : {"Z", "Zg", "Zg=", "Zg===", "=Zg=", "Zh==", "Zm9=", "Zm9v!mFy", "Zm9v YmFy"}) {
    INFO(text);
    CHECK_FALSE(base64_decode(text).has_value());
  }
}

TEST_CASE("UTF-8 is checked to the last form") {
  for (const auto* text : {"", "plain", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK_FALSE(first_invalid_utf8(text).has_value());
  }
  CHECK(first_invalid_utf8("ab\xFF") == 2U);
  for (const auto* text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98"}) {
    CHECK(first_invalid_utf8(text) == 0U);
  }
}

TEST_CASE("messages hold nothing that a log cannot") {
  CHECK(in_quotes("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(in_quotes("a\nb\x7F\xC3") == "\"a\\x0Ab\\x7F\\xC3\"");
  CHECK(in_quotes("/sandboxes/\xC3\xBC \xF0\x9F\x90\x88") == "\"/sandboxes/\xC3\xBC \xF0\x9F\x90\x88\"");
  // What would hide or turn the text around it stays spelt out.
  CHECK(in_quotes("a\xE2\x80\xAE\xC2\xA0z") == "\"a\\xE2\\x80\\xAE\\xC2\\xA0z\"");
  CHECK(in_quotes(std::string(119, 'x') + "\xC3\xBC") == "\"" + std::string(119, 'x') + "\"... (121 bytes)");
  CHECK(in_quotes(std::string(200, 'x')) == "\"" + std::string(120, 'x') + "\"... (200 bytes)");
  CHECK(character_name("?", 0) == "'?'");
  CHECK(character_name("\t", 0) == "U+0009");
  CHECK(character_name(" ", 0) == "U+0020");
  CHECK(character_name("\xC3\xA4", 0) == "U+00E4");
  CHECK(character_name("\xF0\x9F\x98\x80", 0) == "U+01F600");
  CHECK(character_name("\xFF", 0) == "byte 0xFF");
  CHECK(character_name("", 0) == "the end");
}

TEST_CASE("case and blanks are ASCII's") {
  CHECK(to_lower_ascii("AbC\xC3\x84") == "abc\xC3\x84");
  CHECK(equals_ignoring_case("Content-Type", "content-type"));
  CHECK_FALSE(equals_ignoring_case("a", "ab"));
  CHECK(trim(" \tx y\t ") == "x y");
  CHECK(trim(" \t") == "");
}
