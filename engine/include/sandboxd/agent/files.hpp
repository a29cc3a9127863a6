#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sandboxd/agent/app.hpp"
#include "sandboxd/agent/fd.hpp"

namespace sandboxd::agent {

/// Most that a read in one piece answers; larger files are streamed.
inline constexpr std::uint64_t kLargestRead = 33554432;

/// Where the SDK keeps archives inside.
inline constexpr std::string_view kArchives = "/var/backups/";

/// Checks a path of a request and makes it absolute: not empty, no NUL, at most PATH_MAX bytes. Blanks are
/// part of it.
Result<std::string> resolve_path(App& app, const std::string& session_id, const std::string& path,
                                 const char* field = "path");

/// Reads `key` (a path) and `sessionId` of a request body.
Result<std::string> path_field(App& app, const Json& body, const char* key = "path");

/// A regular file that is open for reading.
struct OpenFile {
  UniqueFd fd;
  std::uint64_t size = 0;
};
/// Never waits: what is no regular file is refused. Call it from a thread that may wait for a disk.
Result<OpenFile> open_for_reading(const std::string& path);

/// Writes all of it, from a thread that may wait for a disk.
Result<void> write_fully(int fd, std::string_view bytes, std::string_view path);

/// Writes a file in place: links, owner and permissions of one that is there already stay.
/// Leaves the disk's reserve alone, but for the files of archives.
class FileWriter {
 public:
  static Result<FileWriter> open(const std::string& path);
  Result<void> append(std::string_view bytes);
  Result<void> finish(std::optional<unsigned> mode = std::nullopt);
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  UniqueFd fd_;
  std::string path_;
  std::uint64_t written_ = 0;
};

/// By extension, else by what the first bytes look like.
std::string mime_type(std::string_view path, std::string_view first_bytes);
/// Text is UTF-8 without NUL; `first_bytes` may end inside a character.
bool looks_like_text(std::string_view first_bytes);

}  // namespace sandboxd::agent
