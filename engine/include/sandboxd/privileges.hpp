// What a container may ask of the kernel: few capabilities, all over its own namespaces, and a system call
// filter.
#pragma once

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Gives up every capability that a container's root does not need, for good, and forbids gaining any
/// (no_new_privs).
[[nodiscard]] SysStatus drop_privileges();
/// Installs the system call filter for this process and all that it starts.
[[nodiscard]] SysStatus install_seccomp();

}  // namespace sandboxd
