#include "sandboxd/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

namespace sandboxd {
namespace {

using Json = nlohmann::json;

tl::unexpected<SystemError> invalid(const std::string& what) {
  return failed("invalid_config", "launch configuration: " + what, 0);
}

bool is_token(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), plain);
}

SysResult<std::string> read_string(const Json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_string()) return invalid(std::string(key) + " must be a string");
  auto text = found->get<std::string>();
  if (text.find('\0') != std::string::npos) return invalid(std::string(key) + " holds a NUL byte");
  return text;
}

SysResult<double> read_number(const Json& object, const char* key, double most) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return 0;
  if (!found->is_number()) return invalid(std::string(key) + " must be a number");
  const double value = found->get<double>();
  if (!(value >= 0 && value <= most)) return invalid(std::string(key) + " is out of range");
  return value;
}

SysResult<Limits> read_limits(const Json& document) {
  Limits limits;
  const auto found = document.find("limits");
  if (found == document.end() || found->is_null()) return limits;
  if (!found->is_object()) return invalid("limits must be an object");
  constexpr double most_bytes = 1e15;
  const auto memory = read_number(*found, "memoryBytes", most_bytes);
  const auto disk = read_number(*found, "diskBytes", most_bytes);
  const auto pids = read_number(*found, "pids", 4e6);
  const auto weight = read_number(*found, "cpuWeight", 10000);
  const auto quota = read_number(*found, "cpuQuota", 4096);
  for (const auto* value : {&memory, &disk, &pids, &weight, &quota}) {
    if (!*value) return tl::make_unexpected(value->error());
  }
  limits.memory_bytes = static_cast<std::uint64_t>(*memory);
  limits.disk_bytes = static_cast<std::uint64_t>(*disk);
  limits.pids = static_cast<std::uint64_t>(*pids);
  limits.cpu_weight = static_cast<std::uint64_t>(*weight);
  limits.cpu_quota = *quota;
  return limits;
}

// A port may come as a number, "443", "host:8443" or "[::1]:8443": the rules inside go by port, the host by
// both.
SysResult<std::uint16_t> read_port(const Json& item) {
  long value = -1;
  if (item.is_number_integer()) value = item.get<long>();
  if (item.is_string()) {
    const auto& text = item.get_ref<const std::string&>();
    const auto colon = text.rfind(':');
    const char* first = text.data() + (colon == std::string::npos ? 0 : colon + 1);
    const char* last = text.data() + text.size();
    const auto parsed = std::from_chars(first, last, value);
    if (parsed.ec != std::errc{} || parsed.ptr != last) value = -1;
  }
  if (value < 1 || value > 65535) return invalid("ports: got " + item.dump() + ", want a port or host:port");
  return static_cast<std::uint16_t>(value);
}

SysResult<std::vector<std::uint16_t>> read_ports(const Json& document) {
  std::vector<std::uint16_t> ports;
  const auto found = document.find("ports");
  if (found == document.end() || found->is_null()) return ports;
  if (!found->is_array() || found->size() > 256) return invalid("ports must be an array of at most 256");
  for (const auto& item : *found) {
    const auto port = read_port(item);
    if (!port) return tl::make_unexpected(port.error());
    const bool standard = *port == 80 || *port == 443;
    if (!standard && std::find(ports.begin(), ports.end(), *port) == ports.end()) ports.push_back(*port);
  }
  return ports;
}

SysResult<std::map<std::string, std::string>> read_env(const Json& document) {
  std::map<std::string, std::string> env;
  const auto found = document.find("env");
  if (found == document.end() || found->is_null()) return env;
  if (!found->is_object()) return invalid("env must be an object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return invalid("env." + key + " must be a string");
    if (key.empty() || key.find('=') != std::string::npos || key.find('\0') != std::string::npos ||
        value.get_ref<const std::string&>().find('\0') != std::string::npos) {
      return invalid("env holds a key or value that no process can have: " + key);
    }
    env[key] = value.get<std::string>();
  }
  return env;
}

std::string default_cache_dir() {
  if (::geteuid() == 0) return "/var/cache/iterate-sandboxes";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/iterate-sandboxes";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/iterate-sandboxes" : std::string();
}

struct Field {
  const char* key;
  std::string* target;
  std::string fallback;
};

SysStatus read_strings(const Json& document, std::span<const Field> fields) {
  for (const auto& field : fields) {
    auto text = read_string(document, field.key, field.fallback);
    if (!text) return tl::make_unexpected(text.error());
    *field.target = std::move(*text);
  }
  return {};
}

}  // namespace

SysResult<LaunchConfig> parse_launch_config(std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (!document.is_object()) return invalid("the first line must hold one JSON object");
  LaunchConfig config;
  const std::array fields{Field{"id", &config.id, ""}, Field{"runtimeDir", &config.runtime_dir, ""},
                          Field{"upperDir", &config.upper_dir, ""},
                          Field{"cacheDir", &config.cache_dir, default_cache_dir()}};
  if (auto read = read_strings(document, fields); !read) return tl::make_unexpected(read.error());
  if (config.cache_dir.empty())
    config.cache_dir = config.upper_dir.substr(0, config.upper_dir.rfind('/')) + "/.sandboxd";
  if (!is_token(config.id)) return invalid("id must be 1 to 128 letters, digits, '-', '_' or '.'");
  for (const auto* path : {&config.runtime_dir, &config.upper_dir}) {
    if (path->empty() || path->front() != '/')
      return invalid("runtimeDir and upperDir must be absolute paths");
  }
  auto limits = read_limits(document);
  if (!limits) return tl::make_unexpected(limits.error());
  config.limits = *limits;
  return config;
}

SysResult<StartConfig> parse_start_config(std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (!document.is_object()) return invalid("the second line must hold one JSON object");
  StartConfig config;
  const std::array fields{Field{"hostname", &config.hostname, "sandbox"},
                          Field{"caCertificatePem", &config.ca_certificate_pem, ""}};
  if (auto read = read_strings(document, fields); !read) return tl::make_unexpected(read.error());
  if (!is_token(config.hostname) || config.hostname.size() > 63)
    return invalid("hostname is not a host label");
  auto ports = read_ports(document);
  if (!ports) return tl::make_unexpected(ports.error());
  config.ports = std::move(*ports);
  auto env = read_env(document);
  if (!env) return tl::make_unexpected(env.error());
  config.env = std::move(*env);
  return config;
}

}  // namespace sandboxd
