#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"
#include "sandboxd/agent/write_body.hpp"

namespace sandboxd::agent {
namespace {

/// Of a file that is streamed: a multiple of 3, so that pieces of base64 join without padding.
constexpr std::size_t kStreamChunk = std::size_t{48} << 10U;
constexpr std::size_t kSniff = 8192;

struct Content {
  std::string bytes;
  std::uint64_t size = 0;
};

Result<std::string> read_up_to(int fd, std::size_t limit, std::string_view path) {
  std::string bytes;
  bytes.resize(limit);
  std::size_t used = 0;
  while (used < limit) {
    const ssize_t count = ::read(fd, bytes.data() + used, limit - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(file_error(errno, "cannot read", path, "file.read"));
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
  }
  bytes.resize(used);
  return bytes;
}

Result<Content> read_whole(const std::string& path) {
  auto file = open_for_reading(path);
  if (!file) return fail(std::move(file.error()));
  if (file->size > kLargestRead) {
    AgentError error{"FILE_TOO_LARGE", "'" + path + "' has " + std::to_string(file->size) +
                                           " bytes; a read in one piece answers at most " +
                                           std::to_string(kLargestRead)};
    error.context = {{"path", path}, {"size", file->size}, {"maxSize", kLargestRead}};
    error.operation = "file.read";
    return fail(std::move(error));
  }
  // Files of /proc and /sys say that they are empty.
  const auto limit = static_cast<std::size_t>(file->size == 0 ? kLargestRead : file->size);
  auto bytes = file->size == 0 ? read_up_to(file->fd.get(), std::size_t{1} << 20U, path)
                               : read_up_to(file->fd.get(), limit, path);
  if (!bytes) return fail(std::move(bytes.error()));
  const auto size = static_cast<std::uint64_t>(bytes->size());
  return Content{std::move(*bytes), size};
}

/// Everything of the answer, made on the thread that read the file.
Result<std::string> read_body(const std::string& path, const std::string& encoding) {
  auto content = read_whole(path);
  if (!content) return fail(std::move(content.error()));
  const std::string_view first = std::string_view(content->bytes).substr(0, kSniff);
  const bool text_asked = encoding == "utf-8" || encoding == "utf8";
  const bool binary = encoding.empty()
                          ? content->bytes.find('\0') != std::string::npos || !is_utf8(content->bytes)
                          : !text_asked;
  const Json head = {{"success", true},
                     {"path", path},
                     {"exitCode", 0},
                     {"encoding", binary ? "base64" : "utf-8"},
                     {"isBinary", encoding.empty() ? binary : !looks_like_text(first)},
                     {"mimeType", mime_type(path, first)},
                     {"size", content->size},
                     {"timestamp", iso_timestamp()}};
  std::string body = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  body.pop_back();
  body.reserve(body.size() + content->bytes.size() * (binary ? 4 : 3) / 3 + 64);
  body.append(",\"content\":");
  if (binary) {
    body.push_back('"');
    append_base64(body, content->bytes);
    body.push_back('"');
  } else {
    append_json_string(body, to_utf8(std::move(content->bytes)));
  }
  body.push_back('}');
  return body;
}

Result<std::string> read_encoding(const Json& body) {
  auto encoding = optional_string(body, "encoding");
  if (!encoding) return fail(std::move(encoding.error()));
  const std::string name = encoding->value_or("");
  for (const char* known : {"", "utf-8", "utf8", "base64"}) {
    if (name == known) return name;
  }
  return fail(invalid("encoding", "The encoding '" + name + "' is none of utf-8, utf8 and base64"));
}

Task<Result<Response>> read_file(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  auto encoding = read_encoding(*body);
  if (!encoding) co_return fail(std::move(encoding.error()));
  auto reading =
      app.runtime.offload([path = *path, encoding = *encoding] { return read_body(path, encoding); });
  auto text = co_await std::move(reading);
  if (!text) co_return fail(std::move(text.error()));
  Response response;
  response.body = std::move(*text);
  co_return response;
}

struct StreamedFile {
  OpenFile file;
  std::string path;
  bool text = false;
};

Result<std::string> next_chunk(StreamedFile& streamed) {
  return read_up_to(streamed.file.fd.get(), kStreamChunk, streamed.path);
}

std::string chunk_event(const std::string& chunk, bool text, Utf8Decoder& decoder) {
  std::string event = "data: {\"type\":\"chunk\",\"data\":";
  if (text) {
    append_json_string(event, decoder.feed(chunk));
  } else {
    event.reserve(event.size() + chunk.size() * 4 / 3 + 16);
    event.push_back('"');
    append_base64(event, chunk);
    event.push_back('"');
  }
  event.append("}\n\n");
  return event;
}

Task<bool> send_failure(Sink& sink, const AgentError& error) {
  const Json event = {{"type", "error"}, {"error", error.message}};
  co_return co_await send_event(sink, event);
}

Task<void> stream_file(App& app, Sink& sink, std::shared_ptr<StreamedFile> streamed) {
  auto reading = app.runtime.offload([streamed] { return next_chunk(*streamed); });
  auto chunk = co_await std::move(reading);
  if (!chunk) {
    co_await send_failure(sink, chunk.error());
    co_return;
  }
  const std::string_view first = std::string_view(*chunk).substr(0, kSniff);
  const std::string type = mime_type(streamed->path, first);
  streamed->text = looks_like_text(first) && (type.starts_with("text/") || looks_like_text(*chunk));
  const Json metadata = {{"type", "metadata"},
                         {"mimeType", type},
                         {"size", streamed->file.size},
                         {"isBinary", !streamed->text},
                         {"encoding", streamed->text ? "utf-8" : "base64"}};
  if (!co_await send_event(sink, metadata)) co_return;
  std::uint64_t sent = 0;
  Utf8Decoder decoder;
  while (chunk && !chunk->empty()) {
    sent += chunk->size();
    if (!co_await sink.write(chunk_event(*chunk, streamed->text, decoder))) co_return;
    auto reading = app.runtime.offload([streamed] { return next_chunk(*streamed); });
    chunk = co_await std::move(reading);
  }
  if (!chunk) {
    co_await send_failure(sink, chunk.error());
    co_return;
  }
  const Json complete = {{"type", "complete"}, {"bytesRead", sent}};
  co_await send_event(sink, complete);
}

Task<Result<Response>> read_stream(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto path = path_field(app, *body);
  if (!path) co_return fail(std::move(path.error()));
  auto opening = app.runtime.offload([path = *path] { return open_for_reading(path); });
  auto file = co_await std::move(opening);
  if (!file) co_return fail(std::move(file.error()));
  auto streamed = std::make_shared<StreamedFile>(StreamedFile{std::move(*file), *path, false});
  App* owner = &app;
  co_return event_stream([owner, streamed](Sink& sink) { return stream_file(*owner, sink, streamed); });
}

Result<std::optional<unsigned>> permissions(const std::string& text) {
  if (text.empty()) return std::optional<unsigned>();
  unsigned mode = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7' || mode > 0777U) {
      return fail(invalid("permissions", "Permissions are three or four octal digits, not '" + text + "'"));
    }
    mode = mode * 8 + static_cast<unsigned>(digit - '0');
  }
  return std::optional(mode);
}

Result<std::uint64_t> write_content(const std::string& path, std::string_view content, bool base64,
                                    std::optional<unsigned> mode) {
  std::optional<std::string> decoded;
  if (base64) {
    decoded = base64_decode(content);
    if (!decoded) return fail(invalid("content", "The content is no base64"));
    content = *decoded;
  }
  auto writer = FileWriter::open(path);
  if (!writer) return fail(std::move(writer.error()));
  if (auto appended = writer->append(content); !appended) return fail(std::move(appended.error()));
  if (auto finished = writer->finish(mode); !finished) return fail(std::move(finished.error()));
  return writer->written();
}

Task<Result<Response>> write_file(App& app, Request& request) {
  auto body = parse_write_body(request.body);
  if (!body) co_return fail(std::move(body.error()));
  if (!body->has_content) co_return fail(invalid("content", "'content' is required, as a string"));
  const std::string& encoding = body->encoding;
  if (!encoding.empty() && encoding != "utf-8" && encoding != "utf8" && encoding != "base64") {
    co_return fail(invalid("encoding", "The encoding '" + encoding + "' is none of utf-8, utf8 and base64"));
  }
  auto path = resolve_path(app, body->session_id, body->path);
  if (!path) co_return fail(std::move(path.error()));
  auto mode = permissions(body->permissions);
  if (!mode) co_return fail(std::move(mode.error()));
  auto writing = app.runtime.offload([path = *path, content = body->content, base64 = encoding == "base64",
                                      mode = *mode] { return write_content(path, content, base64, mode); });
  auto written = co_await std::move(writing);
  if (!written) co_return fail(std::move(written.error()));
  co_return json_response({{"success", true},
                           {"path", *path},
                           {"exitCode", 0},
                           {"bytesWritten", *written},
                           {"timestamp", iso_timestamp()}});
}

constexpr Route kFileContentRoutes[] = {
    {"POST", "/api/read", read_file},
    {"POST", "/api/read/stream", read_stream},
    {"POST", "/api/write", write_file},
};

}  // namespace

std::span<const Route> file_routes() {
  return kFileContentRoutes;
}

}  // namespace sandboxd::agent
