#pragma once

#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

using EgressErrors = std::tuple<>;

}  // namespace sandboxes
