#pragma once

#include <memory>
#include <span>

#include "sandboxd/agent/http.hpp"
#include "sandboxd/agent/runtime.hpp"

namespace sandboxd::agent {

class Sessions;
class Processes;
class Contexts;
class Watches;
class Terminals;

/// What the routes work on: one a container, alive as long as the agent.
class App {
 public:
  explicit App(const AgentConfig& config);
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  Runtime runtime;
  std::unique_ptr<Sessions> sessions;
  std::unique_ptr<Processes> processes;
  std::unique_ptr<Contexts> contexts;
  std::unique_ptr<Watches> watches;
  std::unique_ptr<Terminals> terminals;
  const std::string incarnation;  ///< differs in every life of the container
};

std::span<const Route> utility_routes();
std::span<const Route> session_routes();
std::span<const Route> command_routes();
std::span<const Route> file_routes();
std::span<const Route> file_tree_routes();
std::span<const Route> raw_file_routes();
std::span<const Route> process_routes();
std::span<const Route> port_routes();
std::span<const Route> git_routes();
std::span<const Route> backup_routes();
std::span<const Route> watch_routes();
std::span<const Route> context_routes();

/// Every route of the API.
std::span<const std::span<const Route>> all_routes();

}  // namespace sandboxd::agent
