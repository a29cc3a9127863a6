// The only file that knows emscripten. It forwards and decides nothing. Plain functions over numbers: what
// embind would add is a third of a small call's time and code that no call of ours needs.
#include <emscripten/emscripten.h>

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

std::uint32_t place_answer() {
  const auto answer = boundary().answer();
  const auto& body = boundary().answer_body();
  answer_places = {address(answer.data()), static_cast<std::uint32_t>(answer.size()),
                   body ? address(body->data()) : 0U, body ? static_cast<std::uint32_t>(body->size()) : 0U};
  return address(answer_places.data());
}

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE std::uint32_t core_reserve(std::uint32_t bytes) {
  return address(boundary().reserve(bytes));
}

EMSCRIPTEN_KEEPALIVE std::uint32_t core_call(std::uint32_t index, std::uint32_t used,
                                             std::uint32_t has_body) {
  boundary().call(index, used, has_body != 0);
  return place_answer();
}

/// 0 when the call is to be made with JSON.
EMSCRIPTEN_KEEPALIVE std::uint32_t core_call_fields(std::uint32_t index, double handle, std::uint32_t count,
                                                    std::uint32_t text_bytes, std::uint32_t used,
                                                    std::uint32_t has_body) {
  const sandboxes::bindings::FieldsLayout layout{handle, count, text_bytes, used, has_body != 0};
  return boundary().call_fields(index, layout) ? place_answer() : 0;
}

EMSCRIPTEN_KEEPALIVE std::uint32_t core_function_names() {
  boundary().list_functions();
  return place_answer();
}

}  // extern "C"
