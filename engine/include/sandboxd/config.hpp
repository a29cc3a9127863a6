// What a launch is told: one JSON document on standard input.
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

struct LaunchConfig {
  std::string id;
  std::string runtime_dir;
  std::string upper_dir;
  std::string cache_dir;
  std::string hostname;
  std::map<std::string, std::string> env;
  Limits limits;
  std::string ca_certificate_pem;
  bool intercept_https = true;
  std::vector<std::uint16_t> ports;  ///< TCP ports that go to the relay, 80 and 443 always among them
};

[[nodiscard]] SysResult<LaunchConfig> parse_config(std::string_view json);

}  // namespace sandboxd
