#pragma once

#include "codec.hpp"
#include "sandboxes/egress.hpp"

namespace sandboxes::bindings {

/// `{ default, rules }`. An unknown key is refused: a mistyped `host` would make a rule that matches
/// everything.
[[nodiscard]] Result<EgressPolicy> read_policy(Input object, std::string_view key);

}  // namespace sandboxes::bindings
