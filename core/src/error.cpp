#include "sandboxes/error.hpp"

#include <cstddef>
#include <type_traits>

namespace sandboxes {

namespace {

template <std::size_t... Indices>
std::vector<ErrorInfo> collect(std::index_sequence<Indices...>) {
  return {std::variant_alternative_t<Indices, Error>::info...};
}

}  // namespace

ErrorReport describe(const Error& error) {
  return std::visit(
      [](const auto& one) {
        constexpr ErrorInfo info = std::remove_cvref_t<decltype(one)>::info;
        return ErrorReport{info.code, one.message(), one.details(), info.status, info.retryable};
      },
      error);
}

std::vector<ErrorInfo> error_catalogue() {
  return collect(std::make_index_sequence<std::variant_size_v<Error>>{});
}

}  // namespace sandboxes
