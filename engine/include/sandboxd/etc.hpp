// /etc of a container: a chosen part of the machine's (never shadow, keys or private certificates), and
// generated files.
#pragma once

#include <string>

#include "sandboxd/config.hpp"
#include "sandboxd/system.hpp"

namespace sandboxd {

/// Copies the chosen part of the machine's /etc into the cache, once for each state of it; gives the
/// directory.
[[nodiscard]] SysResult<std::string> etc_template(const std::string& cache_dir);
/// Writes the generated files that are the same for everybody into `upper`, the overlay's upper directory of
/// /etc.
[[nodiscard]] SysStatus write_generated_etc(const std::string& upper, Owner owner);
/// Writes what is somebody's, from inside the container: its name, and whom it trusts.
[[nodiscard]] SysStatus write_own_etc(const StartConfig& config);
/// A copy of the directories (and only those) of `source` in the cache: as the topmost lower layer it makes
/// the caller own every directory, so that files can be added beside the machine's where ids cannot be
/// mapped.
[[nodiscard]] SysResult<std::string> directory_skeleton(const std::string& cache_dir,
                                                        const std::string& source, const std::string& name);

}  // namespace sandboxd
