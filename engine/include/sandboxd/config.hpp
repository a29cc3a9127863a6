// What a launch is told: two JSON documents on standard input, a line each. After the first the container is
// made ready; it starts when the second comes, which may be much later.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxd/system.hpp"

namespace sandboxd {

/// Zero means "no limit" for each of them.
struct Limits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint64_t pids = 0;
  std::uint64_t cpu_weight = 0;  ///< 1 to 10000, 100 is ordinary (cgroup v2's scale)
  double cpu_quota = 0;          ///< processors, so 0.25 is a quarter of one
};

/// What containers are made of, whoever they will be for.
struct LaunchConfig {
  std::string id;
  std::string runtime_dir;
  std::string upper_dir;
  std::string cache_dir;
  Limits limits;
};

/// What makes one container somebody's.
struct StartConfig {
  std::string hostname;
  std::map<std::string, std::string> env;
  std::string ca_certificate_pem;
  std::vector<std::uint16_t> ports;  ///< TCP ports that go to the relay besides 80 and 443
};

/// Of either document.
inline constexpr std::size_t most_config_bytes = std::size_t{16} << 20U;

[[nodiscard]] SysResult<LaunchConfig> parse_launch_config(std::string_view json);
[[nodiscard]] SysResult<StartConfig> parse_start_config(std::string_view json);

}  // namespace sandboxd
