#include "sandboxd/agent/app.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>

#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

Task<Result<Response>> home(App&, Request&) {
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = "sandbox control server\n";
  co_return response;
}

Task<Result<Response>> ping(App&, Request&) {
  co_return json_response({{"success", true}, {"message", "pong"}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> version(App& app, Request&) {
  co_return json_response(
      {{"success", true}, {"version", app.runtime.config().version}, {"timestamp", iso_timestamp()}});
}

std::vector<std::string> programs(const std::string& path_variable) {
  std::set<std::string> names;
  std::string_view rest = path_variable;
  while (!rest.empty()) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), &::closedir);
    if (!directory) continue;
    while (const dirent* item = ::readdir(directory.get())) {
      if (item->d_name[0] == '.') continue;
      if (::faccessat(::dirfd(directory.get()), item->d_name, X_OK, 0) == 0) names.insert(item->d_name);
    }
  }
  return {names.begin(), names.end()};
}

Task<Result<Response>> commands(App& app, Request&) {
  const std::string path = app.runtime.base_env()["PATH"];
  auto finding = app.runtime.offload([path] { return programs(path); });
  const auto names = co_await std::move(finding);
  co_return json_response({{"success", true},
                           {"availableCommands", names},
                           {"count", names.size()},
                           {"timestamp", iso_timestamp()}});
}

constexpr Route kAppRoutes[] = {
    {"GET", "/", home},           {"GET", "/ping", ping},           {"GET", "/api/ping", ping},
    {"GET", "/api/health", ping}, {"GET", "/api/version", version}, {"GET", "/api/commands", commands},
};

}  // namespace

std::span<const Route> utility_routes() {
  return kAppRoutes;
}

}  // namespace sandboxd::agent
