#include "sandboxd/agent/http.hpp"

#include <cmath>

#include "sandboxd/agent/app.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr double kLongestTimeoutMs = 2147483647.0;

bool match(std::string_view pattern, std::string_view path, std::string& parameter) {
  const std::size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return pattern == path;
  const std::string_view before = pattern.substr(0, hole);
  const std::string_view after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return false;
  const auto middle = path.substr(before.size(), path.size() - before.size() - after.size());
  if (middle.find('/') != std::string_view::npos) return false;
  auto decoded = percent_decode(middle);
  if (!decoded) return false;
  parameter = std::move(*decoded);
  return true;
}

}  // namespace

Result<Json> Request::json() const {
  Json value = Json::parse(body, nullptr, false);
  if (value.is_discarded()) return fail(invalid("body", "The request body is not valid JSON"));
  if (!value.is_object()) return fail(invalid("body", "The request body must be a JSON object"));
  return value;
}

RouteMatch find_route(std::string_view method, std::string_view path) {
  RouteMatch found;
  for (const auto routes : all_routes()) {
    for (const auto& route : routes) {
      if (route.method == method && match(route.path, path, found.parameter)) {
        found.route = &route;
        return found;
      }
    }
  }
  return found;
}

Task<Response> dispatch(App& app, const Route* route, Request& request) {
  if (route == nullptr) {
    AgentError error{"UNKNOWN_ERROR", "No route for " + request.method + " " + request.path};
    auto response = error_response(error);
    response.status = 404;
    co_return response;
  }
  auto result = co_await route->handler(app, request);
  if (!result) co_return error_response(result.error());
  co_return std::move(*result);
}

Response json_response(const Json& value) {
  Response response;
  response.body = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

Response error_response(const AgentError& error) {
  Response response;
  response.status = http_status(error.code);
  response.body = error_body(error);
  return response;
}

Response event_stream(std::function<Task<void>(Sink&)> stream) {
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.stream = std::move(stream);
  return response;
}

Task<bool> send_event(Sink& sink, const Json& event) {
  std::string text = "data: " + event.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n\n";
  co_return co_await sink.write(text);
}

Result<std::optional<std::string>> optional_string(const Json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end() || field->is_null()) return std::optional<std::string>();
  if (!field->is_string()) return fail(invalid(key, std::string("'") + key + "' must be a string"));
  return std::optional<std::string>(field->get_ref<const std::string&>());
}

Result<std::string> required_string(const Json& object, const char* key) {
  auto text = optional_string(object, key);
  if (!text) return fail(std::move(text.error()));
  if (!*text) return fail(invalid(key, std::string("'") + key + "' is required"));
  return std::move(**text);
}

Result<std::optional<double>> optional_number(const Json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end() || field->is_null()) return std::optional<double>();
  if (!field->is_number()) return fail(invalid(key, std::string("'") + key + "' must be a number"));
  return std::optional<double>(field->get<double>());
}

bool optional_bool(const Json& object, const char* key, bool otherwise) {
  const auto field = object.find(key);
  return field != object.end() && field->is_boolean() ? field->get<bool>() : otherwise;
}

Result<std::map<std::string, std::string>> optional_env(const Json& object, const char* key) {
  std::map<std::string, std::string> env;
  const auto field = object.find(key);
  if (field == object.end() || field->is_null()) return env;
  if (!field->is_object())
    return fail(invalid(key, std::string("'") + key + "' must be an object of strings"));
  for (const auto& [name, value] : field->items()) {
    if (value.is_null()) continue;
    const bool named =
        !name.empty() &&
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
            std::string::npos;
    if (!named || (name[0] >= '0' && name[0] <= '9')) {
      return fail(invalid(key, "'" + name + "' is no name of an environment variable"));
    }
    if (!value.is_string() || value.get_ref<const std::string&>().find('\0') != std::string::npos) {
      return fail(invalid(key, "The value of '" + name + "' must be a string without NUL"));
    }
    env[name] = value.get<std::string>();
  }
  return env;
}

Result<std::vector<std::string>> optional_strings(const Json& object, const char* key) {
  std::vector<std::string> out;
  const auto field = object.find(key);
  if (field == object.end() || field->is_null()) return out;
  if (!field->is_array()) return fail(invalid(key, std::string("'") + key + "' must be an array of strings"));
  for (const auto& item : *field) {
    if (!item.is_string())
      return fail(invalid(key, std::string("'") + key + "' must be an array of strings"));
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<std::optional<std::chrono::milliseconds>> optional_timeout(const Json& object, const char* key) {
  auto number = optional_number(object, key);
  if (!number) return fail(std::move(number.error()));
  if (!*number) return std::optional<std::chrono::milliseconds>();
  const double value = **number;
  if (!(value > 0 && value <= kLongestTimeoutMs)) {
    return fail(
        invalid(key, std::string("'") + key + "' must be above 0 and at most 2147483647 milliseconds"));
  }
  return std::optional(std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(value))));
}

}  // namespace sandboxd::agent
