// The file system that a container sees: the machine's programs under copy-on-write overlays, a generated
// /etc, and nothing else of the machine.
#pragma once

#include <string>

#include "sandboxd/config.hpp"
#include "sandboxd/identity.hpp"
#include "sandboxd/system.hpp"

namespace sandboxd {

/// Directories of the machine that containers see, each under an overlay of its own.
struct Layer {
  const char* path;  ///< in the container
  const char* name;  ///< of its upper and work directories
};

struct RootPlan {
  const LaunchConfig& config;
  const IdentityPlan& identity;
  std::string scratch;       ///< directory that holds root, upper and work directories
  std::string etc_template;  ///< directory with the chosen part of the machine's /etc
  std::string usr_skeleton;  ///< directory tree that makes /usr writable for an ordinary user; empty as root
  int user_namespace = -1;   ///< root only: for id-mapped mounts of the machine's directories
};

/// Directories, links and files on the scratch that need no mount.
[[nodiscard]] SysStatus prepare_scratch(const RootPlan& plan);
/// Mounts the overlays below scratch/root. As root outside the user namespace, otherwise inside it.
[[nodiscard]] SysStatus mount_layers(const RootPlan& plan);
/// The rest, in the container's own mount namespace: /proc, /dev, then the new root; nothing of the old one
/// stays.
[[nodiscard]] SysStatus enter_root(const RootPlan& plan);

}  // namespace sandboxd
