// What of a machine a container can use, and what to install or set where something is missing.
#pragma once

namespace sandboxd {

/// Prints the findings; status 0 when containers can run here.
[[nodiscard]] int doctor(bool json);

}  // namespace sandboxd
