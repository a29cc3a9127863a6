#include <array>

#include "sandboxd/agent/app.hpp"
#include "sandboxd/agent/context.hpp"
#include "sandboxd/agent/process.hpp"
#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/terminal.hpp"
#include "sandboxd/agent/text.hpp"
#include "sandboxd/agent/watch.hpp"

namespace sandboxd::agent {

App::App(const AgentConfig& config)
    : runtime(config),
      sessions(std::make_unique<Sessions>(runtime)),
      processes(std::make_unique<Processes>(runtime)),
      contexts(std::make_unique<Contexts>(runtime)),
      watches(std::make_unique<Watches>(runtime)),
      terminals(std::make_unique<Terminals>(runtime)),
      incarnation(random_id("i")) {}

App::~App() = default;

std::span<const std::span<const Route>> all_routes() {
  static const std::array kAll = {
      command_routes(), file_routes(),    file_tree_routes(), raw_file_routes(),
      session_routes(), process_routes(), port_routes(),      utility_routes(),
      git_routes(),     backup_routes(),  watch_routes(),     context_routes(),
  };
  return kAll;
}

}  // namespace sandboxd::agent
