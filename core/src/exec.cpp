#include "sandboxes/exec.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sandboxes/strings.hpp"

namespace sandboxes {

Result<void> validate_command(std::string_view command) {
  const std::size_t nul = command.find('\0');
  if (nul != std::string_view::npos)
    return fail(InvalidCommand{"it holds NUL at position " + std::to_string(nul)});
  if (std::all_of(command.begin(), command.end(), is_space)) return fail(InvalidCommand{"it is empty"});
  return {};
}

Result<void> validate_timeout(double milliseconds) {
  if (std::isfinite(milliseconds) && milliseconds > 0 && milliseconds <= kMaxTimeoutMs) return {};
  return fail(InvalidTimeout{number_text(milliseconds)});
}

}  // namespace sandboxes
