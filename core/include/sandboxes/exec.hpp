#pragma once

#include <optional>
#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// A longer timer of JavaScript fires at once: it counts in 32 bits.
inline constexpr double kMaxTimeoutMs = 2147483647;

/// A command goes to a shell as it is, blanks and line breaks included; one that says nothing is refused.
[[nodiscard]] Result<void> validate_command(std::string_view command);
/// Milliseconds, above 0. No timeout is another thing than one of 0.
[[nodiscard]] Result<void> validate_timeout(double milliseconds);

}  // namespace sandboxes
