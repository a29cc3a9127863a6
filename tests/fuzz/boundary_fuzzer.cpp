// Any function of the boundary, with any arguments: the first line names it, the second is JSON, the rest a
// body.
// Then the same bytes as bare texts, which the functions that read such must answer or leave to the call.
#include <algorithm>

#include "fuzz.hpp"

namespace {

void call_fields(std::size_t index, std::string_view text, std::string_view body) {
  static sandboxes::bindings::Boundary boundary;
  std::uint8_t* place = boundary.reserve(text.size() + body.size());
  fuzz::require(place != nullptr, "there is memory");
  std::copy(body.begin(), body.end(), std::copy(text.begin(), text.end(), place));
  const auto nuls = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\0'));
  const std::size_t count = text.empty() ? 0 : nuls + 1;
  const sandboxes::bindings::FieldsLayout layout{1048576, count, text.size(), text.size() + body.size(),
                                                 true};
  if (!boundary.call_fields(index, layout)) return;
  const std::string first(boundary.answer());
  fuzz::require(!first.starts_with('{') || nlohmann::json::parse(first, nullptr, false).is_object(),
                "an answer in braces is JSON");
  fuzz::require(boundary.call_fields(index, layout) && boundary.answer() == first,
                "bare texts are answered the same twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = fuzz::parts(fuzz::text(data, size), 3);
  const auto functions = sandboxes::bindings::all_functions();
  std::size_t index = 0;
  while (index < functions.size() && functions[index].name != lines[0]) ++index;
  if (index == functions.size()) {
    std::size_t sum = 0;
    for (const char c : lines[0]) sum = sum * 31 + static_cast<unsigned char>(c);
    index = sum % functions.size();
  }
  // Handles that nobody frees would only fill the memory.
  const std::string_view name = functions[index].name;
  if (name == "createProjection" || name == "compileEgressPolicy") return 0;
  const auto first = fuzz::call(name, lines[1], lines[2]);
  fuzz::require(fuzz::call(name, lines[1], lines[2]) == first, "a function answers the same twice");
  call_fields(index, lines[1], lines[2]);
  return 0;
}
