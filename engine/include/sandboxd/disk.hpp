// The scratch space of one container: everything that it writes lands here and goes with it.
#pragma once

#include <cstdint>
#include <string>

#include "sandboxd/identity.hpp"
#include "sandboxd/system.hpp"

namespace sandboxd {

struct Scratch {
  std::string path;       ///< directory that holds root, upper and work directories
  bool enforced = false;  ///< a file system of its own holds the limit; otherwise it is watched
};

[[nodiscard]] std::string scratch_path(const std::string& upper_dir);

/// Makes the scratch. As root with a limit it is an ext4 file system in a sparse file, which is unlinked at
/// once and held by the loop device only, so that nothing is left whatever happens. Call in a private mount
/// namespace.
[[nodiscard]] SysResult<Scratch> make_scratch(const std::string& upper_dir, const std::string& cache_dir,
                                              std::uint64_t disk_bytes, const IdentityPlan& identity);

}  // namespace sandboxd
