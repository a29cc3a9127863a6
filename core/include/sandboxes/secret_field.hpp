#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// The string that a placeholder selects from a secret's material: the whole, or an own member reached by
/// names joined by dots (an index in an array). The material is JSON.
[[nodiscard]] Result<std::string_view> select_secret_field(simdjson::dom::element material,
                                                           std::optional<std::string_view> field);

}  // namespace sandboxes
