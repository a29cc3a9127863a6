#include "sandboxes/identity.hpp"

#include <catch2/catch.hpp>

using namespace sandboxes;

namespace {

template <class E, class T>
const E* refusal(const Result<T>& result) {
  return result ? nullptr : result.error().template get_if<E>();
}

}  // namespace

TEST_CASE("a refusal names the character and its position") {
  const auto tab = check_sandbox_path("/sandboxes/ab\tc");
  const auto* path = refusal<InvalidPath>(tab);
  REQUIRE(path != nullptr);
  CHECK(path->position == 13);
  CHECK(path->reason == "U+0009 is not allowed");
  const auto nested = check_sandbox_path("/sandboxes/a/b");
  REQUIRE(refusal<InvalidPath>(nested) != nullptr);
  CHECK(refusal<InvalidPath>(nested)->position == 12);
  const auto broken = check_sandbox_path("/sandboxes/\xFF");
  REQUIRE(refusal<InvalidPath>(broken) != nullptr);
  CHECK(refusal<InvalidPath>(broken)->reason == "byte 0xFF is not allowed");
}

TEST_CASE("every byte of a name is accepted or refused alike on both ways") {
  for (int byte = 0; byte < 256; ++byte) {
    const Identity identity{"prj_1", std::string("/sandboxes/a") + static_cast<char>(byte) + "b"};
    const auto name = durable_object_name(identity);
    INFO("byte " << byte);
    if (name) {
      CHECK(parse_durable_object_name(*name).value_or(Identity{}) == identity);
    } else {
      CHECK_FALSE(parse_durable_object_name("prj_1.iterate" + identity.path).has_value());
    }
  }
}

TEST_CASE("what is stored is who it is") {
  const Identity stored{"prj_1", "/sandboxes/x"};
  const Identity other{"prj_2", "/sandboxes/x"};
  CHECK(ensure_identity(nullptr, stored).has_value());
  CHECK(ensure_identity(&stored, stored).has_value());
  const auto mismatch = ensure_identity(&stored, other);
  REQUIRE(refusal<IdentityMismatch>(mismatch) != nullptr);
  CHECK(refusal<IdentityMismatch>(mismatch)->stored == "prj_1.iterate/sandboxes/x");
}
