#include <unistd.h>

#include <cerrno>
#include <memory>

#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10U;

Result<std::string> query_path(App& app, const Request& request) {
  const auto path = request.query.find("path");
  if (path == request.query.end()) return fail(invalid("path", "The query names no 'path'"));
  const auto session = request.query.find("sessionId");
  return resolve_path(app, session == request.query.end() ? "" : session->second, path->second);
}

struct RawFile {
  OpenFile file;
  std::string path;
};

Result<std::string> read_chunk(RawFile& raw, std::uint64_t left) {
  std::string bytes;
  bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kChunk)));
  ssize_t count = 0;
  do {
    count = ::read(raw.file.fd.get(), bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return fail(file_error(errno, "cannot read", raw.path, "file.read"));
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

/// Exactly as many bytes as the head promised, or the connection ends short and the receiver knows.
Task<void> send_raw(App& app, Sink& sink, std::shared_ptr<RawFile> raw, std::uint64_t length) {
  while (length > 0) {
    auto reading = app.runtime.offload([raw, length] { return read_chunk(*raw, length); });
    auto chunk = co_await std::move(reading);
    if (!chunk || chunk->empty()) co_return;
    length -= chunk->size();
    if (!co_await sink.write(*chunk)) co_return;
  }
}

std::string first_bytes(int fd) {
  std::string bytes(512, '\0');
  const ssize_t count = ::pread(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

std::uint64_t query_number(const Request& request, const char* key, std::uint64_t otherwise) {
  const auto found = request.query.find(key);
  if (found == request.query.end() || found->second.empty() || found->second.size() > 18 ||
      found->second.find_first_not_of("0123456789") != std::string::npos) {
    return otherwise;
  }
  return std::stoull(found->second);
}

Task<Result<Response>> get_file(App& app, Request& request) {
  auto path = query_path(app, request);
  if (!path) co_return fail(std::move(path.error()));
  auto opening = app.runtime.offload([path = *path] { return open_for_reading(path); });
  auto file = co_await std::move(opening);
  if (!file) co_return fail(std::move(file.error()));
  const std::uint64_t size = file->size;
  const std::uint64_t offset = std::min(query_number(request, "offset", 0), size);
  const std::uint64_t length = std::min(query_number(request, "length", size - offset), size - offset);
  if (offset != 0 && ::lseek(file->fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    co_return fail(file_error(errno, "cannot read", *path, "file.read"));
  }
  auto raw = std::make_shared<RawFile>(RawFile{std::move(*file), *path});
  Response response;
  response.content_type = "application/octet-stream";
  response.length = length;
  response.headers.emplace_back("X-File-Size", std::to_string(size));
  response.headers.emplace_back("X-Mime-Type", mime_type(*path, first_bytes(raw->file.fd.get())));
  App* owner = &app;
  response.stream = [owner, raw, length](Sink& sink) { return send_raw(*owner, sink, raw, length); };
  co_return response;
}

Task<Result<Response>> put_file(App& app, Request& request) {
  auto path = query_path(app, request);
  if (!path) co_return fail(std::move(path.error()));
  auto opening = app.runtime.offload([path = *path] { return FileWriter::open(path); });
  auto opened = co_await std::move(opening);
  if (!opened) co_return fail(std::move(opened.error()));
  const auto writer = std::make_shared<FileWriter>(std::move(*opened));
  while (true) {
    auto chunk = co_await request.source->read();
    if (!chunk) co_return fail(std::move(chunk.error()));
    if (chunk->empty()) break;
    auto appending =
        app.runtime.offload([writer, bytes = *chunk]() -> Result<void> { return writer->append(bytes); });
    auto appended = co_await std::move(appending);
    if (!appended) co_return fail(std::move(appended.error()));
  }
  auto finishing = app.runtime.offload([writer]() -> Result<void> { return writer->finish(); });
  auto finished = co_await std::move(finishing);
  if (!finished) co_return fail(std::move(finished.error()));
  co_return json_response({{"success", true},
                           {"path", *path},
                           {"bytesWritten", writer->written()},
                           {"timestamp", iso_timestamp()}});
}

constexpr Route kRawFilesRoutes[] = {
    {"GET", "/api/x/file", get_file},
    {"PUT", "/api/x/file", put_file, true},
};

}  // namespace

std::span<const Route> raw_file_routes() {
  return kRawFilesRoutes;
}

}  // namespace sandboxd::agent
