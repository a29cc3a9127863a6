#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

/// An argument has the wrong type or is missing.
struct InvalidInput {
  static constexpr ErrorInfo info{"invalid_input", 400, false,
                                  "An argument has the wrong type or is missing."};
  std::string field;
  std::string got;
  std::string allowed;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidInput&) const = default;
};

/// Text that should be JSON is not, or holds what JSON.parse would not keep (invalid UTF-8, lone surrogates).
struct InvalidJson {
  static constexpr ErrorInfo info{"invalid_json", 400, false, "Text that should be JSON is not well-formed."};
  std::string what;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidJson&) const = default;
};

struct InputTooLarge {
  static constexpr ErrorInfo info{"input_too_large", 413, false, "An input is larger than the limit."};
  std::string what;
  std::int64_t bytes;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InputTooLarge&) const = default;
};

struct NestingTooDeep {
  static constexpr ErrorInfo info{"nesting_too_deep", 400, false,
                                  "A JSON value is nested deeper than the limit."};
  std::string what;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const NestingTooDeep&) const = default;
};

struct UnknownFunction {
  static constexpr ErrorInfo info{"unknown_function", 400, false, "The core has no function of this name."};
  std::string name;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const UnknownFunction&) const = default;
};

/// A projection or policy was used after `free()`.
struct UnknownHandle {
  static constexpr ErrorInfo info{"unknown_handle", 400, false, "A handle was used after it was freed."};
  std::string kind;
  std::int64_t handle;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const UnknownHandle&) const = default;
};

struct OutOfMemory {
  static constexpr ErrorInfo info{"out_of_memory", 503, true, "There is not enough memory for this call."};
  std::string what;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const OutOfMemory&) const = default;
};

using BoundaryErrors = std::tuple<InvalidInput, InvalidJson, InputTooLarge, NestingTooDeep, UnknownFunction,
                                  UnknownHandle, OutOfMemory>;

}  // namespace sandboxes
