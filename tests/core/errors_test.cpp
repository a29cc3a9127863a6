#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "boundary.hpp"
#include "sandboxes/error.hpp"

using namespace sandboxes;

TEST_CASE("codes are unique, snake_case and explained") {
  std::set<std::string_view> codes;
  for (const ErrorInfo& info : error_catalogue()) {
    INFO(info.code);
    CHECK(codes.insert(info.code).second);
    CHECK(info.code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos);
    CHECK(info.status >= 400);
    CHECK(info.status < 600);
    CHECK_FALSE(info.meaning.empty());
  }
}

TEST_CASE("an error is told from others, and copied whole") {
  const Error error = NameTooLong{"path", std::string(300, 'x'), 256};
  const Error copy = error;
  REQUIRE(copy.get_if<NameTooLong>() != nullptr);
  CHECK(copy.get_if<NameTooLong>()->limit == 256);
  CHECK(copy.get_if<InvalidPath>() == nullptr);
  CHECK(describe(copy).code == "name_too_long");
}

TEST_CASE("an error crosses with its five fields") {
  const auto json = nlohmann::json::parse(bindings::print_error(SandboxNotFound{"/sandboxes/x"}));
  CHECK(json["error"]["code"] == "sandbox_not_found");
  CHECK(json["error"]["status"] == 404);
  CHECK(json["error"]["retryable"] == false);
  CHECK(json["error"]["details"]["path"] == "/sandboxes/x");
  CHECK(json["error"]["message"].get<std::string>().find("create()") != std::string::npos);
}
