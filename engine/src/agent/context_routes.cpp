#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/context.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

Result<Language> read_language(const Json& body, const char* otherwise) {
  auto name = optional_string(body, "language");
  if (!name) return fail(std::move(name.error()));
  const auto language = parse_language(name->value_or(otherwise));
  if (language) return *language;
  return fail(
      invalid("language", "The language '" + **name + "' is none of python, javascript and typescript"));
}

Task<Result<Response>> create_context(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto language = read_language(*body, "python");
  if (!language) co_return fail(std::move(language.error()));
  auto cwd = optional_string(*body, "cwd");
  if (!cwd) co_return fail(std::move(cwd.error()));
  auto env = optional_env(*body, body->contains("env_vars") ? "env_vars" : "envVars");
  if (!env) co_return fail(std::move(env.error()));
  const std::string& workspace = app.runtime.config().workspace;
  const std::string folder = join_path(workspace, cwd->value_or(workspace));
  if (auto room = co_await app.runtime.room(); !room) co_return fail(std::move(room.error()));
  auto context = app.contexts->create({random_id("ctx_"), *language, folder, std::move(*env)});
  if (!context) co_return fail(std::move(context.error()));
  auto answer = (*context)->describe();
  answer["success"] = true;
  answer["contextId"] = answer["id"];
  answer["timestamp"] = iso_timestamp();
  co_return json_response(answer);
}

Task<Result<Response>> list_contexts(App& app, Request&) {
  Json list = Json::array();
  for (const auto& context : app.contexts->all()) list.push_back(context->describe());
  const auto count = list.size();
  co_return json_response(
      {{"success", true}, {"contexts", std::move(list)}, {"count", count}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> delete_context(App& app, Request& request) {
  auto context = app.contexts->find(request.parameter);
  if (!context) co_return fail(std::move(context.error()));
  app.contexts->remove(request.parameter);
  co_return json_response(
      {{"success", true}, {"contextId", request.parameter}, {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> execute_code(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto code = required_string(*body, "code");
  if (!code) co_return fail(std::move(code.error()));
  auto id = optional_string(*body, "context_id");
  if (!id) co_return fail(std::move(id.error()));
  auto timeout = optional_timeout(*body, "timeout_ms");
  if (!timeout) co_return fail(std::move(timeout.error()));
  auto language = read_language(*body, "python");
  if (!language) co_return fail(std::move(language.error()));
  const bool named = *id && !(*id)->empty();
  if (!named) {
    if (auto room = co_await app.runtime.room(); !room) co_return fail(std::move(room.error()));
  }
  auto context = named ? app.contexts->find(**id) : app.contexts->shared(*language);
  if (!context) co_return fail(std::move(context.error()));
  co_return event_stream([context = *context, code = *code, timeout = *timeout,
                          cancellation = request.cancellation](Sink& sink) {
    return context->run(sink, code, timeout, cancellation);
  });
}

Task<Result<Response>> health(App& app, Request&) {
  const std::string path = app.runtime.base_env()["PATH"];
  const Json languages = {{"python", !find_program("python3", path).empty()},
                          {"javascript", !find_program("node", path).empty()}};
  co_return json_response({{"success", true},
                           {"ready", true},
                           {"status", "ready"},
                           {"languages", languages},
                           {"timestamp", iso_timestamp()}});
}

constexpr Route kContextRoutes[] = {
    {"POST", "/api/contexts", create_context},      {"GET", "/api/contexts", list_contexts},
    {"DELETE", "/api/contexts/{}", delete_context}, {"POST", "/api/execute/code", execute_code},
    {"GET", "/api/interpreter/health", health},
};

}  // namespace

std::span<const Route> context_routes() {
  return kContextRoutes;
}

}  // namespace sandboxd::agent
