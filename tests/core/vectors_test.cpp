// Runs every tests/vectors/*.json through the boundary, as JavaScript does.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "boundary.hpp"

namespace {

using sandboxes::bindings::Boundary;
using Json = nlohmann::json;

/// Keeps the order of keys, which some inputs are about.
using Vector = nlohmann::ordered_json;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A vector's `body` is text that travels beside the arguments.
Json answer_of(Boundary& boundary, const Vector& vector) {
  const std::string input =
      vector.contains("inputText") ? vector["inputText"].get<std::string>() : vector["input"].dump();
  std::optional<std::string> body;
  if (vector.contains("body")) body = vector["body"].get<std::string>();
  static_cast<void>(boundary.call(vector["call"].get<std::string>(), input, body));
  Json answer = Json::parse(boundary.answer());
  if (boundary.answer_body()) answer["body"] = *boundary.answer_body();
  return answer;
}

void run_file(const std::filesystem::path& path) {
  const Vector vectors = Vector::parse(read_file(path));
  REQUIRE(vectors.is_array());
  Boundary boundary;
  for (const Vector& vector : vectors) {
    const Json answer = answer_of(boundary, vector);
    INFO(path.filename().string() << " " << vector["id"] << " answered " << answer.dump());
    if (vector.contains("error")) {
      REQUIRE(answer.contains("error"));
      CHECK(answer["error"]["code"].get<std::string>() == vector["error"].get<std::string>());
    } else {
      REQUIRE(answer.contains("value"));
      CHECK(answer["value"] == Json::parse(vector["expect"].dump()));
      // An answer without a body leaves the one that was given.
      const Json given = vector.contains("body") ? Json::parse(vector["body"].dump()) : Json();
      if (vector.contains("expectBody"))
        CHECK(answer.value("body", given) == Json::parse(vector["expectBody"].dump()));
    }
  }
}

}  // namespace

TEST_CASE("every vector has its answer") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SANDBOXES_VECTORS)) {
    if (entry.path().extension() != ".json") continue;
    run_file(entry.path());
    ++files;
  }
  CHECK(files > 0);
}
