#pragma once

#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// Seconds of idleness: a positive finite number, or `<digits>(s|m|h)`. The sum with any clock must stay a
/// valid date, so a century is the most.
[[nodiscard]] Result<double> validate_sleep_after(double seconds);
[[nodiscard]] Result<double> validate_sleep_after(std::string_view text);

/// `[A-Za-z_][A-Za-z0-9_]*`: what every shell takes as a name.
[[nodiscard]] bool is_env_key(std::string_view key);

}  // namespace sandboxes
