// The only file that knows emscripten. It forwards and decides nothing.
#include <emscripten/bind.h>

#include <array>

#include "boundary.hpp"

namespace {

using sandboxes::bindings::Boundary;

Boundary& boundary() {
  static Boundary instance;
  return instance;
}

/// Address and length of the answer, address and length of its bytes (address 0: none).
std::array<std::uint32_t, 4> answer_places{};

std::uint32_t address(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

std::uint32_t reserve(std::uint32_t bytes) {
  return address(boundary().reserve(bytes));
}

std::uint32_t call(std::uint32_t index, std::uint32_t used, bool has_body) {
  boundary().call(index, used, has_body);
  const auto answer = boundary().answer();
  const auto& body = boundary().answer_body();
  answer_places = {address(answer.data()), static_cast<std::uint32_t>(answer.size()),
                   body ? address(body->data()) : 0U, body ? static_cast<std::uint32_t>(body->size()) : 0U};
  return address(answer_places.data());
}

std::string functionNames() {
  std::string names;
  for (const auto& entry : sandboxes::bindings::all_functions()) {
    if (!names.empty()) names += ' ';
    names += entry.name;
  }
  return names;
}

}  // namespace

EMSCRIPTEN_BINDINGS(sandboxes) {
  emscripten::function("reserve", &reserve);
  emscripten::function("call", &call);
  emscripten::function("functionNames", &functionNames);
}
