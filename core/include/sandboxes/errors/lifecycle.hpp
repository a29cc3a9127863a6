#pragma once

#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

using LifecycleErrors = std::tuple<>;

}  // namespace sandboxes
