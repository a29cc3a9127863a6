#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

struct MimeRow {
  std::string_view extension;
  std::string_view type;
};

constexpr std::array kMimeTypes = {
    MimeRow{"txt", "text/plain"},
    MimeRow{"log", "text/plain"},
    MimeRow{"md", "text/markdown"},
    MimeRow{"html", "text/html"},
    MimeRow{"htm", "text/html"},
    MimeRow{"css", "text/css"},
    MimeRow{"csv", "text/csv"},
    MimeRow{"js", "text/javascript"},
    MimeRow{"mjs", "text/javascript"},
    MimeRow{"cjs", "text/javascript"},
    MimeRow{"ts", "text/typescript"},
    MimeRow{"tsx", "text/typescript"},
    MimeRow{"jsx", "text/javascript"},
    MimeRow{"py", "text/x-python"},
    MimeRow{"c", "text/x-c"},
    MimeRow{"h", "text/x-c"},
    MimeRow{"cpp", "text/x-c++"},
    MimeRow{"hpp", "text/x-c++"},
    MimeRow{"rs", "text/x-rust"},
    MimeRow{"go", "text/x-go"},
    MimeRow{"sh", "text/x-shellscript"},
    MimeRow{"json", "application/json"},
    MimeRow{"xml", "application/xml"},
    MimeRow{"yaml", "application/yaml"},
    MimeRow{"yml", "application/yaml"},
    MimeRow{"toml", "application/toml"},
    MimeRow{"pdf", "application/pdf"},
    MimeRow{"zip", "application/zip"},
    MimeRow{"gz", "application/gzip"},
    MimeRow{"tgz", "application/gzip"},
    MimeRow{"tar", "application/x-tar"},
    MimeRow{"wasm", "application/wasm"},
    MimeRow{"sqlite", "application/vnd.sqlite3"},
    MimeRow{"png", "image/png"},
    MimeRow{"jpg", "image/jpeg"},
    MimeRow{"jpeg", "image/jpeg"},
    MimeRow{"gif", "image/gif"},
    MimeRow{"webp", "image/webp"},
    MimeRow{"svg", "image/svg+xml"},
    MimeRow{"ico", "image/x-icon"},
    MimeRow{"mp3", "audio/mpeg"},
    MimeRow{"wav", "audio/wav"},
    MimeRow{"mp4", "video/mp4"},
    MimeRow{"webm", "video/webm"},
    MimeRow{"woff2", "font/woff2"},
};

constexpr std::array kMagic = {
    MimeRow{"\x89PNG\r\n", "image/png"},
    MimeRow{"\xFF\xD8\xFF", "image/jpeg"},
    MimeRow{"GIF8", "image/gif"},
    MimeRow{"%PDF-", "application/pdf"},
    MimeRow{"PK\x03\x04", "application/zip"},
    MimeRow{"\x1F\x8B", "application/gzip"},
    MimeRow{"\x7F"
            "ELF",
            "application/x-executable"},
};

}  // namespace

Result<std::string> resolve_path(App& app, const std::string& session_id, const std::string& path,
                                 const char* field) {
  if (path.empty()) return fail(invalid(field, "A path must not be empty"));
  if (path.find('\0') != std::string::npos)
    return fail(invalid(field, "A path must not hold a NUL character"));
  if (path.size() >= PATH_MAX) {
    return fail(invalid(field, "A path has at most " + std::to_string(PATH_MAX - 1) + " bytes, this one " +
                                   std::to_string(path.size())));
  }
  return path.starts_with('/') ? path : join_path(app.sessions->directory_of(session_id), path);
}

Result<std::string> path_field(App& app, const Json& body, const char* key) {
  auto path = required_string(body, key);
  if (!path) return path;
  auto session = optional_string(body, "sessionId");
  if (!session) return fail(std::move(session.error()));
  return resolve_path(app, session->value_or(""), *path, key);
}

Result<OpenFile> open_for_reading(const std::string& path) {
  // Without O_NONBLOCK the open of a named pipe would wait for a writer.
  OpenFile file{UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), 0};
  if (!file.fd) return fail(file_error(errno, "cannot read", path, "file.read"));
  struct stat status {};
  if (::fstat(file.fd.get(), &status) < 0) return fail(file_error(errno, "cannot read", path, "file.read"));
  if (S_ISDIR(status.st_mode)) return fail(file_error(EISDIR, "cannot read", path, "file.read"));
  if (!S_ISREG(status.st_mode)) {
    AgentError error{"FILESYSTEM_ERROR", "'" + path + "' is no regular file"};
    error.context = {{"path", path}};
    return fail(std::move(error));
  }
  file.size = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<void> write_fully(int fd, std::string_view bytes, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(file_error(errno, "cannot write", path, "file.write"));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<FileWriter> FileWriter::open(const std::string& path) {
  FileWriter writer;
  writer.path_ = path;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
  writer.fd_.reset(::open(path.c_str(), kFlags, 0644));
  if (!writer.fd_) return fail(file_error(errno, "cannot write", path, "file.write"));
  struct stat status {};
  if (::fstat(writer.fd_.get(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
    AgentError error{"FILESYSTEM_ERROR", "'" + path + "' is no regular file"};
    error.context = {{"path", path}};
    return fail(std::move(error));
  }
  return writer;
}

Result<void> FileWriter::append(std::string_view bytes) {
  struct statvfs disk {};
  if (!path_.starts_with(kArchives) && ::fstatvfs(fd_.get(), &disk) == 0 && disk.f_blocks != 0 &&
      disk.f_bavail == 0) {
    return fail(file_error(ENOSPC, "cannot write", path_, "file.write"));
  }
  auto done = write_fully(fd_.get(), bytes, path_);
  if (done) written_ += bytes.size();
  return done;
}

Result<void> FileWriter::finish(std::optional<unsigned> mode) {
  if (mode && ::fchmod(fd_.get(), *mode) < 0) {
    return fail(file_error(errno, "cannot set the permissions of", path_, "file.write"));
  }
  if (::close(fd_.release()) < 0) return fail(file_error(errno, "cannot write", path_, "file.write"));
  return {};
}

std::string mime_type(std::string_view path, std::string_view first_bytes) {
  for (const auto& row : kMagic) {
    if (first_bytes.starts_with(row.extension)) return std::string(row.type);
  }
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) {
    std::string extension(name.substr(dot + 1));
    std::ranges::transform(extension, extension.begin(), [](unsigned char letter) {
      return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    });
    const auto* row = std::ranges::find(kMimeTypes, std::string_view(extension), &MimeRow::extension);
    if (row != kMimeTypes.end()) return std::string(row->type);
  }
  return looks_like_text(first_bytes) ? "text/plain" : "application/octet-stream";
}

bool looks_like_text(std::string_view first_bytes) {
  if (first_bytes.find('\0') != std::string_view::npos) return false;
  if (is_utf8(first_bytes)) return true;
  for (std::size_t cut = 1; cut < 4 && cut < first_bytes.size(); ++cut) {
    const auto last = static_cast<unsigned char>(first_bytes[first_bytes.size() - cut]);
    if (last >= 0xC2) return is_utf8(first_bytes.substr(0, first_bytes.size() - cut));
    if (last < 0x80) return false;
  }
  return false;
}

}  // namespace sandboxd::agent
