#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sandboxes {

/// What is fixed about an error: one `static constexpr ErrorInfo info` in each error struct.
/// The catalogue of errors that the docs and TypeScript show is printed from these.
struct ErrorInfo {
  std::string_view code;  ///< stable snake_case
  int status;             ///< HTTP status that fits
  bool retryable;         ///< whether the same call may succeed later without a change
  std::string_view meaning;
};

using DetailValue = std::variant<std::string, std::int64_t, double, bool>;

/// Named facts about one error, for programs; the message holds the same for people.
using Details = std::vector<std::pair<std::string_view, DetailValue>>;

}  // namespace sandboxes
