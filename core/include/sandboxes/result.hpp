#pragma once

#include <tl/expected.hpp>

#include "sandboxes/error.hpp"

namespace sandboxes {

/// What every fallible function of the core returns: a value, or an error that says why there is none.
template <class T>
using Result = tl::expected<T, Error>;

/// `return fail(NameTooLong{...});` from a function that returns `Result<T>`.
template <class E>
[[nodiscard]] tl::unexpected<Error> fail(E error) {
  return tl::unexpected<Error>(Error(std::move(error)));
}

/// Hands an inner error on, whatever the outer value type is: `if (!name) return propagate(name);`
template <class T>
[[nodiscard]] tl::unexpected<Error> propagate(const Result<T>& failed) {
  return tl::unexpected<Error>(failed.error());
}

}  // namespace sandboxes
