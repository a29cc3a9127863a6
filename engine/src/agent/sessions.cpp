#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sandboxd/agent/app.hpp"
#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/terminal.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kLongestSessionId = 256;

Result<std::string> session_id(const Json& body, const char* key) {
  auto id = required_string(body, key);
  if (!id) return id;
  const bool blank = id->find_first_not_of(" \t\r\n") == std::string::npos;
  if (blank || id->size() > kLongestSessionId || id->find('\0') != std::string::npos || *id == kSessionless) {
    return fail(invalid(
        key, "A session id has 1 to 256 bytes, is not blank, and is not " + std::string(kSessionless)));
  }
  return id;
}

Json placement(App& app) {
  const auto& env = app.runtime.config().env;
  const auto found = env.find("CLOUDFLARE_PLACEMENT_ID");
  return found == env.end() ? Json() : Json(found->second);
}

Task<Result<Response>> create_session(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto id = session_id(*body, "id");
  if (!id) co_return fail(std::move(id.error()));
  auto env = optional_env(*body, "env");
  if (!env) co_return fail(std::move(env.error()));
  auto cwd = optional_string(*body, "cwd");
  if (!cwd) co_return fail(std::move(cwd.error()));
  auto timeout = optional_timeout(*body, "commandTimeoutMs");
  if (!timeout) co_return fail(std::move(timeout.error()));
  auto session = app.sessions->create({*id, std::move(*env), cwd->value_or(""), *timeout});
  if (!session) {
    if (session.error().code == "SESSION_ALREADY_EXISTS") {
      session.error().context["containerPlacementId"] = placement(app);
    }
    co_return fail(std::move(session.error()));
  }
  co_return json_response({{"success", true},
                           {"id", *id},
                           {"message", "Session created"},
                           {"containerPlacementId", placement(app)},
                           {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> delete_session(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto id = session_id(*body, "sessionId");
  if (!id) co_return fail(std::move(id.error()));
  app.sessions->remove(*id);
  app.terminals->end(*id);
  co_return json_response({{"success", true}, {"sessionId", *id}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> list_sessions(App& app, Request&) {
  const auto ids = app.sessions->ids();
  co_return json_response(
      {{"success", true}, {"sessions", ids}, {"count", ids.size()}, {"timestamp", iso_timestamp()}});
}

constexpr Route kSessionsRoutes[] = {
    {"POST", "/api/session/create", create_session},
    {"POST", "/api/session/delete", delete_session},
    {"GET", "/api/session/list", list_sessions},
};

}  // namespace

void Sessions::adopt(WaitingShell shell) {
  prepared_ = true;
  spare_ = Session::adopt(runtime_, std::move(shell));
}

void Sessions::prepare() {
  if (std::exchange(prepared_, true)) return;
  // A fault here is met again, and told, by whoever asks for a session.
  if (auto spare = Session::open(runtime_, {"", {}, "", std::nullopt})) spare_ = std::move(*spare);
}

Result<std::shared_ptr<Session>> Sessions::create(SessionOptions options) {
  const auto found = sessions_.find(options.id);
  if (found != sessions_.end() && found->second->alive()) {
    AgentError error{"SESSION_ALREADY_EXISTS", "Session '" + options.id + "' already exists"};
    error.context = {{"sessionId", options.id}};
    return fail(std::move(error));
  }
  const std::string id = options.id;
  const bool service = id.starts_with(kBackupSession);
  if (!service) prepared_ = true;
  if (spare_ && !service) {
    const auto spare = std::exchange(spare_, nullptr);
    if (spare->become(options)) return sessions_[id] = spare;
    spare->destroy();
  }
  auto session = Session::open(runtime_, std::move(options));
  if (session) sessions_[id] = *session;
  return session;
}

Result<std::shared_ptr<Session>> Sessions::get(const std::string& id) {
  const auto found = sessions_.find(id);
  SessionOptions options{id, {}, "", std::nullopt};
  if (found != sessions_.end()) {
    const auto session = found->second;
    if (session->alive()) return session;
    if (session->end_unreported()) {
      session->mark_reported();
      return fail(session->terminated());
    }
    options = session->options();
  }
  return create(std::move(options));
}

std::shared_ptr<Session> Sessions::find(const std::string& id) const {
  const auto found = sessions_.find(id);
  return found != sessions_.end() && found->second->alive() ? found->second : nullptr;
}

void Sessions::remove(const std::string& id) {
  const auto found = sessions_.extract(id);
  if (!found.empty()) found.mapped()->destroy();
}

void Sessions::remove_all() {
  if (const auto spare = std::exchange(spare_, nullptr)) spare->destroy();
  for (const auto& [id, session] : std::exchange(sessions_, {})) session->destroy();
}

std::vector<std::string> Sessions::ids() const {
  std::vector<std::string> out;
  for (const auto& [id, session] : sessions_) {
    if (session->alive()) out.push_back(id);
  }
  return out;
}

std::string Sessions::directory_of(const std::string& id) const {
  const auto session = is_sessionless(id) ? nullptr : find(id);
  return session ? session->cwd() : runtime_.config().workspace;
}

std::span<const Route> session_routes() {
  return kSessionsRoutes;
}

}  // namespace sandboxd::agent
