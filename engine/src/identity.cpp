#include "sandboxd/identity.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace sandboxd {
namespace {

constexpr std::uint32_t range_size = 65536;
// Far above what /etc/subuid usually hands out; 32768 ranges end below 2^32.
constexpr std::uint32_t first_range = 0x10000000;
constexpr std::uint32_t ranges = 32768;

// The first range of at least a few ids that the file gives to this user, by name or by number.
std::uint32_t find_range(const char* path, const std::string& name, const std::string& number,
                         std::uint32_t& size) {
  const auto text = read_file(path);
  if (!text) return 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto who = line.substr(0, first);
    if (who != name && who != number) continue;
    const unsigned long start = std::strtoul(line.c_str() + first + 1, nullptr, 10);
    const unsigned long count = std::strtoul(line.c_str() + second + 1, nullptr, 10);
    if (start == 0 || count < 1000 || start > 0xffff0000UL) continue;
    size = static_cast<std::uint32_t>(count < range_size ? count : range_size - 1);
    return static_cast<std::uint32_t>(start);
  }
  return 0;
}

// A static binary has no use for getpwuid, which loads libraries of the machine.
std::string user_name(uid_t uid) {
  const auto text = read_file("/etc/passwd");
  if (!text) return {};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (std::strtoul(line.c_str() + second + 1, nullptr, 10) == uid) return line.substr(0, first);
  }
  return {};
}

bool have_program(const char* name) {
  return exists(std::string("/usr/bin/") + name) || exists(std::string("/bin/") + name);
}

}  // namespace

IdentityPlan plan_identity(pid_t launcher) {
  IdentityPlan plan;
  if (::geteuid() == 0) {
    plan.kind = IdentityPlan::Kind::root_range;
    plan.uid = first_range + (static_cast<std::uint32_t>(launcher) % ranges) * range_size;
    plan.gid = plan.uid;
    plan.count = range_size;
    return plan;
  }
  plan.uid = ::geteuid();
  plan.gid = ::getegid();
  if (!have_program("newuidmap") || !have_program("newgidmap")) return plan;
  const std::string name = user_name(plan.uid);
  std::uint32_t uids = 0;
  std::uint32_t gids = 0;
  plan.range_uid = find_range("/etc/subuid", name, std::to_string(plan.uid), uids);
  plan.range_gid = find_range("/etc/subgid", name, std::to_string(plan.uid), gids);
  if (plan.range_uid != 0 && plan.range_gid != 0) {
    plan.kind = IdentityPlan::Kind::user_range;
    plan.count = 1 + (uids < gids ? uids : gids);
  }
  return plan;
}

SysStatus write_id_maps(pid_t pid, const IdentityPlan& plan) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const std::string count = std::to_string(plan.count);
  if (plan.kind == IdentityPlan::Kind::user_range) {
    const auto map = [&](const char* program, std::uint32_t own, std::uint32_t range) {
      return run_program({program, std::to_string(pid), "0", std::to_string(own), "1", "1",
                          std::to_string(range), std::to_string(plan.count - 1)}) == 0;
    };
    if (!map("newuidmap", plan.uid, plan.range_uid) || !map("newgidmap", plan.gid, plan.range_gid)) {
      return failed("id_map_refused",
                    "newuidmap or newgidmap refused the range of /etc/subuid and /etc/subgid", 0);
    }
    return {};
  }
  if (plan.kind == IdentityPlan::Kind::single) {
    if (auto denied = poke(proc + "/setgroups", "deny"); !denied) return denied;
  }
  if (auto gid = poke(proc + "/gid_map", "0 " + std::to_string(plan.gid) + " " + count); !gid) return gid;
  return poke(proc + "/uid_map", "0 " + std::to_string(plan.uid) + " " + count);
}

}  // namespace sandboxd
