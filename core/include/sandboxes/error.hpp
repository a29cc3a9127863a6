#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sandboxes/errors/boundary.hpp"
#include "sandboxes/errors/deployment.hpp"
#include "sandboxes/errors/egress.hpp"
#include "sandboxes/errors/info.hpp"
#include "sandboxes/errors/lifecycle.hpp"
#include "sandboxes/errors/secret.hpp"
#include "sandboxes/errors/state.hpp"

namespace sandboxes {

namespace internal {

template <class... Tuples>
using Concatenated = decltype(std::tuple_cat(std::declval<Tuples>()...));

template <class Tuple>
struct VariantOf;

template <class... Errors>
struct VariantOf<std::tuple<Errors...>> {
  using type = std::variant<Errors...>;
};

}  // namespace internal

/// Every refusal of the core, one small struct a kind. Each domain lists its own in `errors/<domain>.hpp`.
using Error =
    internal::VariantOf<internal::Concatenated<BoundaryErrors, StateErrors, EgressErrors, LifecycleErrors,
                                               DeploymentErrors, SecretErrors>>::type;

/// An error as it leaves the core: what JavaScript's `SandboxError` holds.
struct ErrorReport {
  std::string_view code;
  std::string message;
  Details details;
  int status;
  bool retryable;
};

/// The one map from errors to what is said about them. A struct without `info`, `message()` and `details()`
/// does not compile here.
[[nodiscard]] ErrorReport describe(const Error& error);

/// The fixed facts of every error, in the order of the variant.
[[nodiscard]] std::vector<ErrorInfo> error_catalogue();

}  // namespace sandboxes
