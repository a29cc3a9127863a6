#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "boundary.hpp"

namespace fuzz {

/// A rule that does not hold is a crash, which libFuzzer keeps.
inline void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The input in `count` parts, cut at line breaks; the last has the rest.
inline std::vector<std::string_view> parts(std::string_view input, std::size_t count) {
  std::vector<std::string_view> found;
  while (found.size() + 1 < count) {
    const std::size_t end = input.find('\n');
    found.push_back(input.substr(0, end));
    input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  }
  found.push_back(input);
  return found;
}

/// Calls as JavaScript does and checks that the answer is one: JSON with a value, or an error with its five
/// fields.
inline nlohmann::json call(std::string_view name, std::string_view json,
                           std::optional<std::string_view> body = std::nullopt) {
  static sandboxes::bindings::Boundary boundary;
  nlohmann::json answer = nlohmann::json::parse(boundary.call(name, json, body), nullptr, false);
  require(answer.is_object() && answer.size() == 1, "an answer holds a value or an error");
  if (answer.contains("error")) {
    const auto& error = answer["error"];
    require(error.size() == 5 && !error["code"].get<std::string>().empty(), "an error has five fields");
    require(error["code"] != "unknown_function", "the fuzzer calls what there is");
  }
  return answer;
}

}  // namespace fuzz
