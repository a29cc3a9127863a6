#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandboxd/agent/runtime.hpp"

namespace sandboxd::agent {

/// Where a streamed answer goes. `write` waits for the receiver; false means that it is gone.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Task<bool> write(std::string_view bytes) = 0;
};

/// Where a streamed request comes from; an empty result is its end.
class Source {
 public:
  virtual ~Source() = default;
  virtual Task<Result<std::string_view>> read() = 0;
};

struct Request {
  std::string method;
  std::string path;
  std::map<std::string, std::string> query;
  std::string body;          ///< whole, for every route that does not stream
  Source* source = nullptr;  ///< for the routes that do
  std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
  std::string parameter;  ///< what `{}` of the route's path matched

  /// The body as a JSON object, or VALIDATION_FAILED.
  [[nodiscard]] Result<Json> json() const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::optional<std::uint64_t> length;  ///< of a streamed answer, when known
  std::vector<std::pair<std::string, std::string>> headers;
  std::function<Task<void>(Sink&)> stream;
};

class App;
using Handler = Task<Result<Response>> (*)(App&, Request&);

struct Route {
  std::string_view method;
  std::string_view path;  ///< one `{}` stands for one segment
  Handler handler;
  bool streams_body = false;
};

/// The route for a request, with what `{}` matched; null when there is none.
struct RouteMatch {
  const Route* route = nullptr;
  std::string parameter;
};
RouteMatch find_route(std::string_view method, std::string_view path);

/// Runs the handler; a failure becomes the SDK's error body.
Task<Response> dispatch(App& app, const Route* route, Request& request);

Response json_response(const Json& value);
Response error_response(const AgentError& error);
/// A response that streams server-sent events.
Response event_stream(std::function<Task<void>(Sink&)> stream);
/// One `data:` event, in ASCII so that no receiver can cut a character.
Task<bool> send_event(Sink& sink, const Json& event);

/// Field readers: absent or null gives nullopt, another type is VALIDATION_FAILED.
Result<std::optional<std::string>> optional_string(const Json& object, const char* key);
Result<std::string> required_string(const Json& object, const char* key);
Result<std::optional<double>> optional_number(const Json& object, const char* key);
bool optional_bool(const Json& object, const char* key, bool otherwise);
/// An object of strings; null values are left out.
Result<std::map<std::string, std::string>> optional_env(const Json& object, const char* key);
Result<std::vector<std::string>> optional_strings(const Json& object, const char* key);
/// A positive number of milliseconds.
Result<std::optional<std::chrono::milliseconds>> optional_timeout(const Json& object, const char* key);

}  // namespace sandboxd::agent
