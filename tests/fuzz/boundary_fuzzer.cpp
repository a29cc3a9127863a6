// Any function of the boundary, with any arguments: the first line names it, the second is JSON, the rest a
// body.
#include "fuzz.hpp"

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
  return 0;
}
