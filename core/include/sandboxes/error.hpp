#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sandboxes/errors/boundary.hpp"
#include "sandboxes/errors/deployment.hpp"
#include "sandboxes/errors/egress.hpp"
#include "sandboxes/errors/info.hpp"
#include "sandboxes/errors/lifecycle.hpp"
#include "sandboxes/errors/secret.hpp"
#include "sandboxes/errors/state.hpp"

namespace sandboxes {

/// Every refusal of the core, one small struct a kind. Each domain lists its own in `errors/<domain>.hpp`.
using AllErrors = decltype(std::tuple_cat(std::declval<BoundaryErrors>(), std::declval<StateErrors>(),
                                          std::declval<EgressErrors>(), std::declval<LifecycleErrors>(),
                                          std::declval<DeploymentErrors>(), std::declval<SecretErrors>()));

/// An error as it leaves the core: what JavaScript's `SandboxError` holds.
struct ErrorReport {
  std::string_view code;
  std::string message;
  Details details;
  int status;
  bool retryable;
};

namespace internal {

template <class E, class Tuple>
struct IsOneOf;

template <class E, class... Errors>
struct IsOneOf<E, std::tuple<Errors...>> : std::bool_constant<(std::is_same_v<E, Errors> || ...)> {};

/// What is said about a kind of error, and the address that names the kind.
struct ErrorKind {
  ErrorReport (*report)(const void*);
  void (*destroy)(const void*);
};

/// A struct without `info`, `message()` and `details()` does not compile here.
template <class E>
inline constexpr ErrorKind error_kind{
    [](const void* value) {
      const E& error = *static_cast<const E*>(value);
      return ErrorReport{E::info.code, error.message(), error.details(), E::info.status, E::info.retryable};
    },
    [](const void* value) { delete static_cast<const E*>(value); }};

}  // namespace internal

/// One of `AllErrors`. A closed variant, kept behind a pointer: a `std::variant` of as many alternatives
/// would be compiled anew, at great cost, in every file that returns a `Result`. What is not inline here is
/// so for the same reason: errors are copied and destroyed at every step out.
class Error {
 public:
  template <class E>
  requires requires { E::info.code; }
  Error(E error)  // NOLINT(google-explicit-constructor): as with a variant
      : Error(&internal::error_kind<E>, new E(std::move(error))) {
    static_assert(internal::IsOneOf<E, AllErrors>::value,
                  "list it in errors/<domain>.hpp, for the catalogue");
  }
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error();

  /// The error when it is of this kind, else null.
  template <class E>
  [[nodiscard]] const E* get_if() const {
    return kind_ == &internal::error_kind<E> ? static_cast<const E*>(value_.get()) : nullptr;
  }

  [[nodiscard]] ErrorReport report() const;

 private:
  Error(const internal::ErrorKind* kind, const void* owned);

  const internal::ErrorKind* kind_;
  std::shared_ptr<const void> value_;
};

/// What is said about an error: its code, message, details, status and whether it may pass.
[[nodiscard]] ErrorReport describe(const Error& error);

/// The fixed facts of every error, in the order of `AllErrors`.
[[nodiscard]] std::vector<ErrorInfo> error_catalogue();

}  // namespace sandboxes
