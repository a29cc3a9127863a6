#include "sandboxes/error.hpp"

#include <cstddef>

namespace sandboxes {

namespace {

template <std::size_t... Indices>
std::vector<ErrorInfo> collect(std::index_sequence<Indices...>) {
  return {std::tuple_element_t<Indices, AllErrors>::info...};
}

}  // namespace

ErrorReport describe(const Error& error) {
  return error.report();
}

std::vector<ErrorInfo> error_catalogue() {
  return collect(std::make_index_sequence<std::tuple_size_v<AllErrors>>{});
}

}  // namespace sandboxes
