// The launcher's loop while its container lives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandboxd/cgroup.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/disk.hpp"
#include "sandboxd/identity.hpp"
#include "sandboxd/network.hpp"

namespace sandboxd {

struct Supervised {
  const LaunchConfig& config;
  IdentityPlan identity;
  ContainerGroups groups;
  Scratch scratch;
  NetworkSockets sockets;
  Fd runtime;      ///< directory of the sockets
  Fd link = Fd();  ///< to the container's first process, which holds the other end for as long as it lives
  pid_t pid = -1;
};

struct Ending {
  int status = 0;
  std::string reason;   ///< exited, killed, memory_exceeded, disk_exceeded
  std::string message;  ///< for people; may be empty
};

/// Serves the relay, forwards signals and watches the limits until the container has ended.
class Supervisor {
 public:
  /// Handles signals from here on. `say` gets lines about what happens meanwhile.
  Supervisor(Supervised& container, std::function<void(std::string_view)> say);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  [[nodiscard]] Ending run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes a container's scratch, also where its files belong to ids that only exist inside.
void clean_scratch(const std::string& path, const IdentityPlan& identity);

}  // namespace sandboxd
