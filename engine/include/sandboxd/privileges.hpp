// What a container may ask of the kernel: few capabilities, all over its own namespaces, and a system call
// filter.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Gives up every capability that a container's root does not need, for good, and forbids gaining any
/// (no_new_privs).
[[nodiscard]] SysStatus drop_privileges();
/// Commands run with the agent's ids: its memory and descriptors are not for them.
void hide_from_commands();

/// The system call filter of this process and all that it starts: making it takes a while, installing it does
/// not.
class CallFilter {
 public:
  [[nodiscard]] static SysResult<CallFilter> make();
  /// Makes one system call and nothing else unless that fails, so that a child of vfork may ask for it.
  [[nodiscard]] SysStatus install() const;

 private:
  std::vector<sock_filter> program_;
};

}  // namespace sandboxd
