#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

Result<void> make_directories(const std::string& path, bool recursive) {
  if (!recursive) {
    if (::mkdir(path.c_str(), 0755) < 0) {
      return fail(file_error(errno, "cannot make the directory", path, "directory.create"));
    }
    return {};
  }
  for (std::size_t at = path.find('/', 1); true; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    struct stat status {};
    if (::mkdir(part.c_str(), 0755) < 0) {
      const int number = errno;
      const bool there = ::stat(part.c_str(), &status) == 0;
      if (!there) return fail(file_error(number, "cannot make the directory", part, "directory.create"));
      if (!S_ISDIR(status.st_mode)) {
        return fail(file_error(at == std::string::npos ? EEXIST : ENOTDIR, "cannot make the directory", part,
                               "directory.create"));
      }
    }
    if (at == std::string::npos) return {};
  }
}

Task<Result<Response>> mkdir_route(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  const bool recursive = optional_bool(*body, "recursive", false);
  auto making = app.runtime.offload([path = *path, recursive] { return make_directories(path, recursive); });
  auto made = co_await std::move(making);
  if (!made) co_return fail(std::move(made.error()));
  co_return json_response({{"success", true},
                           {"path", *path},
                           {"recursive", recursive},
                           {"exitCode", 0},
                           {"timestamp", iso_timestamp()}});
}

Result<void> remove_file(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) < 0)
    return fail(file_error(errno, "cannot delete", path, "file.delete"));
  if (S_ISDIR(status.st_mode)) return fail(file_error(EISDIR, "cannot delete", path, "file.delete"));
  if (::unlink(path.c_str()) < 0) return fail(file_error(errno, "cannot delete", path, "file.delete"));
  return {};
}

Task<Result<Response>> delete_route(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  auto removing = app.runtime.offload([path = *path] { return remove_file(path); });
  auto removed = co_await std::move(removing);
  if (!removed) co_return fail(std::move(removed.error()));
  co_return json_response(
      {{"success", true}, {"path", *path}, {"exitCode", 0}, {"timestamp", iso_timestamp()}});
}

/// Across file systems rename fails: then copy and remove, as mv does, with mv.
Task<Result<void>> move_path(App& app, std::string from, std::string to, std::string_view operation) {
  auto renaming = app.runtime.offload(
      [from, to]() -> Result<int> { return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno; });
  auto number = co_await std::move(renaming);
  if (*number == 0) co_return Result<void>();
  struct stat status {};
  const bool there = ::lstat(from.c_str(), &status) == 0;
  if (*number != EXDEV) {
    co_return fail(
        file_error(*number, there ? "cannot move to" : "cannot move", there ? to : from, operation));
  }
  SpawnRequest mv;
  mv.argv = {"/bin/mv", "-T", "-f", "--", from, to};
  mv.env = env_list(app.runtime.base_env());
  auto child = Child::start(app.runtime, std::move(mv));
  if (!child) co_return fail(std::move(child.error()));
  auto result = co_await (*child)->collect({}, nullptr, "mv");
  if (!result) co_return fail(std::move(result.error()));
  if (result->exit_code == 0) co_return Result<void>();
  AgentError error{"FILESYSTEM_ERROR", "cannot move '" + from + "' to '" + to + "': " + result->err};
  error.context = {{"path", from}, {"stderr", result->err}, {"exitCode", result->exit_code}};
  co_return fail(std::move(error));
}

Task<Result<Response>> move_between(App& app, Request& request, const char* from_key, const char* to_key,
                                    std::string_view operation) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto from = path_field(app, *body, from_key);
  if (!from) co_return fail(std::move(from.error()));
  auto to = path_field(app, *body, to_key);
  if (!to) co_return fail(std::move(to.error()));
  auto moved = co_await move_path(app, *from, *to, operation);
  if (!moved) co_return fail(std::move(moved.error()));
  co_return json_response({{"success", true},
                           {"path", *from},
                           {"newPath", *to},
                           {"oldPath", *from},
                           {"exitCode", 0},
                           {"timestamp", iso_timestamp()}});
}

Task<Result<Response>> rename_route(App& app, Request& request) {
  return move_between(app, request, "oldPath", "newPath", "file.rename");
}

Task<Result<Response>> move_route(App& app, Request& request) {
  return move_between(app, request, "sourcePath", "destinationPath", "file.move");
}

Task<Result<Response>> exists_route(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  auto asking = app.runtime.offload([path = *path]() -> Result<bool> {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0;
  });
  auto exists = co_await std::move(asking);
  co_return json_response(
      {{"success", true}, {"path", *path}, {"exists", *exists}, {"timestamp", iso_timestamp()}});
}

std::string_view type_name(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  if (S_ISLNK(mode)) return "symlink";
  return "other";
}

std::string mode_text(mode_t mode) {
  constexpr std::string_view kLetters = "rwxrwxrwx";
  std::string text(kLetters);
  for (std::size_t index = 0; index < kLetters.size(); ++index) {
    if ((mode & (1U << (8U - index))) == 0) text[index] = '-';
  }
  return text;
}

/// Appends one entry by hand: a listing of 50,000 files as a JSON tree would cost hundreds of bytes an entry.
void append_entry(std::string& out, const std::string& name, const std::string& absolute,
                  const std::string& relative, const struct stat& status) {
  out.append(out.empty() ? "{\"name\":" : ",{\"name\":");
  append_json_string(out, to_utf8(name));
  out.append(",\"absolutePath\":");
  append_json_string(out, to_utf8(absolute));
  out.append(",\"relativePath\":");
  append_json_string(out, to_utf8(relative));
  out.append(",\"type\":\"").append(type_name(status.st_mode)).append("\",\"size\":");
  out.append(std::to_string(status.st_size)).append(",\"modifiedAt\":\"");
  out.append(iso_timestamp(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)).append("\",\"mode\":\"");
  const std::string mode = mode_text(status.st_mode);
  out.append(mode).append("\",\"permissions\":{\"readable\":").append(mode[0] == 'r' ? "true" : "false");
  out.append(",\"writable\":").append(mode[1] == 'w' ? "true" : "false");
  out.append(",\"executable\":").append(mode[2] == 'x' ? "true" : "false").append("}}");
}

struct Listing {
  std::string entries;
  std::size_t count = 0;
};

struct ListOptions {
  bool recursive = false;
  bool hidden = false;
};

/// Descriptor by descriptor, so that no link that is swapped in meanwhile is followed.
Result<void> list_into(Listing& out, UniqueFd directory, const std::string& absolute,
                       const std::string& relative, const ListOptions& options) {
  const int fd = directory.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), &::closedir);
  if (!stream) return fail(file_error(errno, "cannot list", absolute, "directory.list"));
  (void)directory.release();
  while (const dirent* item = ::readdir(stream.get())) {
    const std::string name = item->d_name;
    if (name == "." || name == ".." || (!options.hidden && name[0] == '.')) continue;
    struct stat status {};
    if (::fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    const std::string child_absolute = join_path(absolute, name);
    const std::string child_relative = relative.empty() ? name : join_path(relative, name);
    append_entry(out.entries, name, child_absolute, child_relative, status);
    ++out.count;
    if (!options.recursive || !S_ISDIR(status.st_mode)) continue;
    UniqueFd inner(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // A directory that went away, or that may not be read, is listed but not entered.
    if (!inner) continue;
    if (auto done = list_into(out, std::move(inner), child_absolute, child_relative, options); !done)
      return done;
  }
  return {};
}

Result<Listing> list_directory(const std::string& path, const ListOptions& options) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(file_error(errno, "cannot list", path, "directory.list"));
  Listing listing;
  if (auto done = list_into(listing, std::move(fd), path, "", options); !done)
    return fail(std::move(done.error()));
  return listing;
}

Task<Result<Response>> list_route(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  const auto found = body->find("options");
  const Json options = found != body->end() && found->is_object() ? *found : Json::object();
  const ListOptions wanted{optional_bool(options, "recursive", false),
                           optional_bool(options, "includeHidden", false)};
  auto listing_task = app.runtime.offload([path = *path, wanted] { return list_directory(path, wanted); });
  auto listing = co_await std::move(listing_task);
  if (!listing) co_return fail(std::move(listing.error()));
  const Json head = {{"success", true},
                     {"path", *path},
                     {"count", listing->count},
                     {"exitCode", 0},
                     {"timestamp", iso_timestamp()}};
  Response response;
  response.body = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.body.pop_back();
  response.body.append(",\"files\":[").append(listing->entries).append("]}");
  co_return response;
}

constexpr Route kFileTreeRoutes[] = {
    {"POST", "/api/mkdir", mkdir_route},   {"POST", "/api/delete", delete_route},
    {"POST", "/api/rename", rename_route}, {"POST", "/api/move", move_route},
    {"POST", "/api/exists", exists_route}, {"POST", "/api/list-files", list_route},
};

}  // namespace

std::span<const Route> file_tree_routes() {
  return kFileTreeRoutes;
}

}  // namespace sandboxd::agent
