#include "sandboxes/error.hpp"

#include <cstddef>

namespace sandboxes {

namespace {

template <std::size_t... Indices>
std::vector<ErrorInfo> collect(std::index_sequence<Indices...>) {
  return {std::tuple_element_t<Indices, AllErrors>::info...};
}

}  // namespace

Error::Error(const internal::ErrorKind* kind, const void* owned)
    : kind_(kind), value_(owned, kind->destroy) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

ErrorReport Error::report() const {
  return kind_->report(value_.get());
}

ErrorReport describe(const Error& error) {
  return error.report();
}

std::vector<ErrorInfo> error_catalogue() {
  return collect(std::make_index_sequence<std::tuple_size_v<AllErrors>>{});
}

}  // namespace sandboxes
