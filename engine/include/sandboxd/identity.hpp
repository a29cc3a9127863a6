// Which ids outside play the ids inside. Root maps a range of its own for each container, so that neither
// another container's processes nor a kernel limit counted by user is shared; an ordinary user has what
// /etc/subuid gives.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Group of the disk's reserve. Below every range, so that nobody inside can take it.
inline constexpr gid_t reserve_gid = 0x0FFFFFFE;

struct IdentityPlan {
  enum class Kind { root_range, user_range, single } kind = Kind::single;
  uid_t uid = 0;            ///< uid outside of uid 0 inside
  gid_t gid = 0;            ///< gid outside of gid 0 inside
  std::uint32_t count = 1;  ///< ids inside
  uid_t range_uid = 0;      ///< user_range: where ids from 1 on come from
  gid_t range_gid = 0;

  [[nodiscard]] bool privileged() const { return kind == Kind::root_range; }
  [[nodiscard]] Owner owner() const { return {privileged(), uid, gid}; }
};

[[nodiscard]] IdentityPlan plan_identity(pid_t launcher);
/// Writes the maps of a process that has just entered its own user namespace.
[[nodiscard]] SysStatus write_id_maps(pid_t pid, const IdentityPlan& plan);

}  // namespace sandboxd
