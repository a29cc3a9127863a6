// The input as an event and as a batch. A fold in two halves gives what a fold at once gives, and a state
// goes round.
#include <algorithm>

#include "fuzz.hpp"

namespace {

using Json = nlohmann::json;

void fold_in_halves(const Json& events, const Json& whole) {
  Json sorted = events;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Json& left, const Json& right) {
    return left["offset"].get<double>() < right["offset"].get<double>();
  });
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  const Json first = fuzz::call("foldProjection", Json{{"events", Json(sorted.begin(), middle)}}.dump());
  fuzz::require(first.contains("value"), "half a good batch is good");
  const Json second = fuzz::call(
      "foldProjection", Json{{"events", Json(middle, sorted.end())}, {"state", first["value"]}}.dump());
  fuzz::require(second == whole, "two halves fold to the whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text(data, size);
  fuzz::call("validateEvent", input);
  const Json whole = fuzz::call("foldProjection", "{}", input);
  if (!whole.contains("value")) return 0;
  fuzz::require(fuzz::call("foldProjection", Json{{"state", whole["value"]}}.dump(), "[]") == whole,
                "a state goes round");
  fuzz::require(fuzz::call("foldProjection", Json{{"state", whole["value"]}}.dump(), input) == whole,
                "what was folded already changes nothing");
  const Json events = Json::parse(input, nullptr, false);
  if (events.is_array()) fold_in_halves(events, whole);
  return 0;
}
