#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"
#include "sandboxd/agent/watch.hpp"

namespace sandboxd::agent {
namespace {

bool is_inside(const std::string& path, const std::string& root) {
  return path == root || (path.starts_with(root) && path[root.size()] == '/');
}

/// Without `.`, `..` and doubled slashes.
std::string normal_path(const std::string& path) {
  std::vector<std::string_view> parts;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string out;
  for (const auto part : parts) out.append("/").append(part);
  return out.empty() ? "/" : out;
}

Result<WatchOptions> read_options(App& app, const Json& body) {
  WatchOptions options;
  auto path = path_field(app, body);
  if (!path) return fail(std::move(path.error()));
  options.path = normal_path(*path);
  const std::string& root = app.runtime.config().workspace;
  if (!is_inside(options.path, root)) {
    return fail(
        invalid("path", "Only paths inside " + root + " can be watched, '" + options.path + "' is not"));
  }
  options.recursive = optional_bool(body, "recursive", true);
  auto include = optional_strings(body, "include");
  if (!include) return fail(std::move(include.error()));
  auto exclude = optional_strings(body, "exclude");
  if (!exclude) return fail(std::move(exclude.error()));
  if (!include->empty() && !exclude->empty()) {
    return fail(invalid("exclude", "'include' and 'exclude' cannot be used together"));
  }
  options.include = std::move(*include);
  if (const auto given = body.find("exclude"); given != body.end() && given->is_array())
    options.exclude = *exclude;
  auto events = optional_strings(body, "events");
  if (!events) return fail(std::move(events.error()));
  if (!events->empty()) options.events = {events->begin(), events->end()};
  return options;
}

Json event_json(const WatchEvent& event) {
  return {{"type", "event"},
          {"eventType", event.type},
          {"path", event.path},
          {"isDirectory", event.directory},
          {"timestamp", iso_timestamp()}};
}

Task<void> stream_watch(Sink& sink, std::shared_ptr<Watch> watch, std::string path,
                        std::shared_ptr<Cancellation> cancellation) {
  const auto guard = cancellation->on_cancel([watch] { watch->changed().notify(); });
  Json event = {{"type", "watching"}, {"path", path}, {"watchId", random_id("watch_")}};
  if (!co_await send_event(sink, event)) co_return;
  watch->start();
  while (!cancellation->fired()) {
    const auto look = watch->changed().look();
    if (watch->lost_events()) {
      event = {{"type", "error"}, {"error", "Changes came faster than they could be told; some were lost"}};
      if (!co_await send_event(sink, event)) co_return;
    }
    if (!watch->events().empty()) {
      event = event_json(watch->events().front());
      watch->events().pop_front();
      if (!co_await send_event(sink, event)) co_return;
      continue;
    }
    if (!watch->ended().empty()) {
      event = {{"type", "stopped"}, {"reason", watch->ended()}};
      co_await send_event(sink, event);
      co_return;
    }
    co_await watch->changed().wait_since(look);
  }
}

Task<Result<Response>> watch_route(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto options = read_options(app, *body);
  if (!options) co_return fail(std::move(options.error()));
  auto opening =
      app.runtime.offload([&app, options = *options] { return Watch::open(app.runtime, options); });
  auto watch = co_await std::move(opening);
  if (!watch) co_return fail(std::move(watch.error()));
  co_return event_stream([watch = *watch, path = options->path, cancellation = request.cancellation](
                             Sink& sink) { return stream_watch(sink, watch, path, cancellation); });
}

Task<Result<Response>> check_changes(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto options = read_options(app, *body);
  if (!options) co_return fail(std::move(options.error()));
  auto since = optional_string(*body, "since");
  if (!since) co_return fail(std::move(since.error()));
  bool created = false;
  auto retained = co_await app.watches->retain(*options, created);
  if (!retained) co_return fail(std::move(retained.error()));
  const std::string prefix = app.incarnation + ":";
  const std::string state = prefix + (*retained)->id + ":";
  const std::string version = state + std::to_string((*retained)->watch->count());
  Json answer = {
      {"success", true}, {"status", "unchanged"}, {"version", version}, {"timestamp", iso_timestamp()}};
  if (*since && !(*since)->starts_with(prefix)) {
    answer["status"] = "resync";
    answer["reason"] = "restarted";
  } else if (*since && !(*since)->starts_with(state)) {
    answer["status"] = "resync";
    answer["reason"] = "expired";
  } else if (*since && **since != version) {
    answer["status"] = "changed";
  }
  co_return json_response(answer);
}

constexpr Route kWatchRoutes[] = {
    {"POST", "/api/watch", watch_route},
    {"POST", "/api/watch/check", check_changes},
};

}  // namespace

std::span<const Route> watch_routes() {
  return kWatchRoutes;
}

}  // namespace sandboxd::agent
