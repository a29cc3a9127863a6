#include "sandboxd/agent/backup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <thread>

#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

namespace fs = std::filesystem;

struct BackupRequest {
  std::string dir;
  std::string archive;
  bool gitignore = false;
  std::vector<std::string> excludes;
  std::string format = "zstd";
  int threads = 0;
};

/// This program again, whatever the files of the sandbox are.
constexpr std::string_view kOwnProgram = "/proc/self/exe";

unsigned processors() {
  return std::max(1U, std::thread::hardware_concurrency());
}

AgentError backup_error(std::string_view code, const std::string& dir, std::string message,
                        const CommandResult* result = nullptr) {
  AgentError error{code, std::move(message)};
  error.context = {{"dir", dir}};
  if (result != nullptr) {
    error.context["stderr"] = to_utf8(result->err);
    error.context["exitCode"] = result->exit_code;
  }
  error.operation = code == "BACKUP_CREATE_FAILED" ? "backup.create" : "backup.restore";
  return error;
}

Result<BackupRequest> read_backup(App& app, const Json& body) {
  BackupRequest out;
  auto dir = path_field(app, body, "dir");
  if (!dir) return fail(std::move(dir.error()));
  out.dir = std::move(*dir);
  auto archive = path_field(app, body, "archivePath");
  if (!archive) return fail(std::move(archive.error()));
  out.archive = std::move(*archive);
  out.gitignore = optional_bool(body, "gitignore", false);
  auto excludes = optional_strings(body, "excludes");
  if (!excludes) return fail(std::move(excludes.error()));
  out.excludes = std::move(*excludes);
  const auto compression = body.find("compression");
  if (compression == body.end() || !compression->is_object()) return out;
  auto format = optional_string(*compression, "format");
  if (!format) return fail(std::move(format.error()));
  out.format = format->value_or(out.format);
  for (const char* known : {"gzip", "lz4", "zstd"}) {
    if (out.format != known) continue;
    auto threads = optional_number(*compression, "threads");
    if (!threads) return fail(std::move(threads.error()));
    // More than there are processors would only take turns.
    out.threads = static_cast<int>(std::clamp(threads->value_or(0), 0.0, static_cast<double>(processors())));
    return out;
  }
  return fail(invalid("compression", "The compression is one of gzip, lz4 and zstd"));
}

Task<Result<CommandResult>> run(App& app, std::vector<std::string> argv, std::string cwd,
                                Cancellation* cancellation) {
  SpawnRequest request;
  const std::string name = argv.front();
  const std::string path = app.runtime.base_env()["PATH"];
  if (name != kOwnProgram) argv.front() = find_program(name, path);
  if (argv.front().empty()) {
    co_return fail(AgentError{"INTERNAL_ERROR", "'" + name + "' is not installed in the sandbox"});
  }
  request.argv = std::move(argv);
  request.env = env_list(app.runtime.base_env());
  request.cwd = std::move(cwd);
  request.service = true;
  auto child = Child::start(app.runtime, std::move(request));
  if (!child) co_return fail(std::move(child.error()));
  co_return co_await (*child)->collect({}, cancellation, name);
}

/// Every repository under `root`, not looking into those that are found to be ignored by name.
void find_repositories(const fs::path& folder, int depth, std::vector<std::string>& out) {
  std::error_code error;
  if (fs::exists(folder / ".git", error)) out.push_back(folder.string());
  if (depth == 0) return;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
    const auto name = item->path().filename();
    std::error_code ignored;
    if (name == ".git" || name == "node_modules" || item->is_symlink(ignored) || !item->is_directory(ignored))
      continue;
    find_repositories(item->path(), depth - 1, out);
  }
}

/// What git ignores under `dir`, relative to it: in `dir` itself, in a repository around it, in repositories
/// inside.
Task<std::vector<std::string>> ignored_paths(App& app, const std::string& dir, Cancellation* cancellation) {
  constexpr int kDepth = 6;
  auto finding = app.runtime.offload([dir]() -> Result<std::vector<std::string>> {
    std::vector<std::string> repositories;
    find_repositories(dir, kDepth, repositories);
    return repositories;
  });
  auto found = co_await std::move(finding);
  auto folders = std::move(*found);
  if (std::ranges::find(folders, dir) == folders.end()) folders.insert(folders.begin(), dir);
  std::vector<std::string> out;
  for (const auto& folder : folders) {
    // A repository may name a program that watches its files; it would run without the commands' limits.
    std::vector<std::string> argv = {
        "git",      "-c",        "safe.directory=*",   "-c",         "core.fsmonitor=false", "ls-files", "-z",
        "--others", "--ignored", "--exclude-standard", "--directory"};
    auto result = co_await run(app, std::move(argv), folder, cancellation);
    // Not a repository, or none that git can read: nothing of it is ignored.
    if (!result || result->exit_code != 0) continue;
    const std::string prefix = folder.size() > dir.size() ? folder.substr(dir.size() + 1) + "/" : "";
    std::string_view rest = result->out;
    while (!rest.empty()) {
      std::string_view entry = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
      while (entry.ends_with('/')) entry.remove_suffix(1);
      if (!entry.empty() && entry != ".") out.push_back(prefix + std::string(entry));
    }
  }
  co_return out;
}

/// For the engine's own archiver each pattern ends with a NUL; mksquashfs reads lines, takes a backslash off
/// the beginning of one, and cannot be told of a name with a newline.
std::string exclude_file(const std::vector<std::string>& excludes, bool lines) {
  std::string out;
  for (const auto& pattern : excludes) {
    if (!lines) {
      out += pattern + '\0';
    } else if (pattern.find('\n') == std::string::npos) {
      out += "\\" + pattern + "\n";
    }
  }
  return out;
}

Result<std::string> prepare_archive(const std::string& dir, const std::string& archive,
                                    const std::string& excludes) {
  struct stat status {};
  // Of a link to a directory only the link would be kept.
  if (::lstat(dir.c_str(), &status) < 0 || !S_ISDIR(status.st_mode)) {
    const std::string fault = S_ISLNK(status.st_mode) ? "' is a symbolic link" : "' does not exist";
    return fail(backup_error("BACKUP_CREATE_FAILED", dir, "The directory '" + dir + fault));
  }
  std::error_code error;
  fs::create_directories(fs::path(archive).parent_path(), error);
  ::unlink(archive.c_str());
  const std::string path = archive + ".exclude";
  auto writer = FileWriter::open(path);
  if (!writer) return fail(std::move(writer.error()));
  if (auto done = writer->append(excludes); !done) return fail(std::move(done.error()));
  if (auto done = writer->finish(); !done) return fail(std::move(done.error()));
  return path;
}

/// lz4, the SDK's choice, goes to the engine's own archiver, in a process of its own: it takes half of the
/// time.
std::vector<std::string> archiver(const BackupRequest& backup, const std::string& list) {
  if (backup.format == "lz4") {
    return {std::string(kOwnProgram),
            "squash",
            backup.dir,
            backup.archive,
            list,
            std::to_string(backup.threads > 0 ? backup.threads : processors())};
  }
  std::vector<std::string> argv = {"mksquashfs", backup.dir, backup.archive, "-noappend",  "-no-progress",
                                   "-quiet",     "-comp",    backup.format,  "-wildcards", "-ef",
                                   list};
  if (backup.format == "zstd") argv.insert(argv.end(), {"-Xcompression-level", "3"});
  if (backup.threads > 0) argv.insert(argv.end(), {"-processors", std::to_string(backup.threads)});
  return argv;
}

Task<std::vector<std::string>> all_excludes(App& app, const BackupRequest& backup,
                                            Cancellation* cancellation) {
  std::vector<std::string> out;
  for (const auto& pattern : backup.excludes) add_exclude(out, pattern);
  if (backup.gitignore) {
    const auto ignored = co_await ignored_paths(app, backup.dir, cancellation);
    for (const auto& path : ignored) out.push_back(literal_exclude(path));
  }
  // An archive inside the directory must not hold itself.
  if (backup.archive.starts_with(backup.dir + "/")) {
    const std::string inside = backup.archive.substr(backup.dir.size() + 1);
    out.push_back(literal_exclude(inside));
    out.push_back(literal_exclude(inside + ".exclude"));
  }
  co_return out;
}

Task<Result<Response>> create_backup(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto backup = read_backup(app, *body);
  if (!backup) co_return fail(std::move(backup.error()));
  while (backup->dir.size() > 1 && backup->dir.ends_with('/')) backup->dir.pop_back();
  const auto excludes = co_await all_excludes(app, *backup, request.cancellation.get());
  auto preparing = app.runtime.offload(
      [dir = backup->dir, archive = backup->archive, file = exclude_file(excludes, backup->format != "lz4")] {
        return prepare_archive(dir, archive, file);
      });
  auto list = co_await std::move(preparing);
  if (!list) co_return fail(std::move(list.error()));
  auto result = co_await run(app, archiver(*backup, *list), "/", request.cancellation.get());
  ::unlink(list->c_str());
  if (!result || result->exit_code != 0) {
    ::unlink(backup->archive.c_str());
    if (!result) co_return fail(std::move(result.error()));
    const std::string message = "the archiver failed with status " + std::to_string(result->exit_code) + ": ";
    co_return fail(
        backup_error("BACKUP_CREATE_FAILED", backup->dir, message + to_utf8(result->err), &*result));
  }
  struct stat status {};
  if (::stat(backup->archive.c_str(), &status) < 0) {
    co_return fail(file_error(errno, "cannot find the archive", backup->archive, "backup.create"));
  }
  co_return json_response(
      {{"success", true}, {"sizeBytes", status.st_size}, {"archivePath", backup->archive}});
}

/// Puts what was extracted in the place of what was there. Until here the directory was as before.
Result<void> exchange(const std::string& dir, const std::string& extracted) {
  std::error_code error;
  const fs::path fresh(extracted);
  const std::string own = fresh.filename().string();
  for (fs::directory_iterator item(dir, error), end; !error && item != end; item.increment(error)) {
    if (item->path().filename() == own) continue;
    std::error_code failed;
    fs::remove_all(item->path(), failed);
    if (failed)
      return fail(file_error(failed.value(), "cannot replace", item->path().string(), "backup.restore"));
  }
  std::vector<fs::path> names;
  for (fs::directory_iterator item(fresh, error), end; !error && item != end; item.increment(error)) {
    names.push_back(item->path().filename());
  }
  for (const auto& name : names) {
    if (::rename((fresh / name).c_str(), (fs::path(dir) / name).c_str()) < 0) {
      return fail(file_error(errno, "cannot restore", (fs::path(dir) / name).string(), "backup.restore"));
    }
  }
  struct stat status {};
  if (::stat(extracted.c_str(), &status) == 0 && ::chmod(dir.c_str(), status.st_mode & 07777U) < 0) {
    return fail(file_error(errno, "cannot set the permissions of", dir, "backup.restore"));
  }
  fs::remove_all(fresh, error);
  return {};
}

Task<Result<Response>> restore_backup(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto dir = path_field(app, *body, "dir");
  if (!dir) co_return fail(std::move(dir.error()));
  auto archive = path_field(app, *body, "archivePath");
  if (!archive) co_return fail(std::move(archive.error()));
  std::error_code made;
  fs::create_directories(*dir, made);
  if (made) co_return fail(file_error(made.value(), "cannot make the directory", *dir, "backup.restore"));
  // On the same file system as its place, so that it only has to be renamed there.
  const std::string extracted = *dir + "/" + random_id(".restore-");
  std::vector<std::string> argv = {"unsquashfs", "-no-progress", "-quiet", "-d", extracted, *archive};
  auto result = co_await run(app, std::move(argv), "/", request.cancellation.get());
  if (!result || result->exit_code != 0) {
    auto removing = app.runtime.offload([extracted]() -> Result<void> {
      std::error_code ignored;
      fs::remove_all(extracted, ignored);
      return {};
    });
    co_await std::move(removing);
    if (!result) co_return fail(std::move(result.error()));
    const std::string message = "unsquashfs failed with status " + std::to_string(result->exit_code) + ": ";
    co_return fail(backup_error("BACKUP_RESTORE_FAILED", *dir, message + to_utf8(result->err), &*result));
  }
  auto exchanging = app.runtime.offload([dir = *dir, extracted] { return exchange(dir, extracted); });
  auto exchanged = co_await std::move(exchanging);
  if (!exchanged) {
    auto error = backup_error("BACKUP_RESTORE_FAILED", *dir, exchanged.error().message);
    co_return fail(std::move(error));
  }
  co_return json_response({{"success", true}, {"dir", *dir}});
}

constexpr Route kBackupRoutes[] = {
    {"POST", "/api/backup/create", create_backup},
    {"POST", "/api/backup/restore", restore_backup},
    {"POST", "/api/backup/upload-parts", upload_parts},
};

}  // namespace

std::string literal_exclude(std::string_view path) {
  std::string out;
  for (const char byte : path) {
    if (std::string_view("*?[]\\+@!(){}|^#").find(byte) != std::string_view::npos) out.push_back('\\');
    out.push_back(byte);
  }
  return out;
}

void add_exclude(std::vector<std::string>& out, std::string_view pattern) {
  while (pattern.starts_with("./")) pattern.remove_prefix(2);
  const bool anchored = pattern.starts_with('/');
  while (pattern.starts_with('/')) pattern.remove_prefix(1);
  while (pattern.ends_with('/')) pattern.remove_suffix(1);
  // What is outside is not archived, and mksquashfs refuses to be told so.
  if (pattern.empty() || pattern.starts_with("../")) return;
  // One segment matches at any depth, a path only from the root.
  const bool anywhere = !anchored && pattern.find('/') == std::string_view::npos;
  out.push_back((anywhere ? "... " : "") + std::string(pattern));
}

std::span<const Route> backup_routes() {
  return kBackupRoutes;
}

}  // namespace sandboxd::agent
