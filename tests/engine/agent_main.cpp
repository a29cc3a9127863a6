// Runs the agent outside any namespace, for its tests: `agent_main <socket> <workspace> <run directory>`.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "sandboxd/agent/agent.hpp"
#include "sandboxd/squash/squash.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "squash") {
    return sandboxd::squash::squash(std::span(argv + 2, argv + argc));
  }
  if (argc != 4) {
    std::fprintf(stderr, "usage: agent_main <socket> <workspace> <run directory>\n");
    return 64;
  }
  const std::string path = argv[1];
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return 64;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 || ::listen(fd, 128) < 0) {
    std::perror("agent_main: control socket");
    return 70;
  }
  sandboxd::agent::AgentConfig config;
  config.control_listen_fd = fd;
  config.workspace = argv[2];
  config.run_directory = argv[3];
  config.ca_certificate.clear();
  config.env["HOME"] = argv[2];
  if (const char* search = std::getenv("PATH")) config.env["PATH"] = search;
  std::puts("ready");
  std::fflush(stdout);
  return sandboxd::agent::run_agent(config);
}
