#include <algorithm>
#include <memory>

#include "sandboxd/agent/backup.hpp"
#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::size_t kAtOnce = 4;
constexpr std::size_t kMostParts = 10000;

struct Part {
  int number = 0;
  std::string url;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string etag;
};

struct Upload {
  std::string archive;
  std::vector<Part> parts;
  std::size_t next = 0;
  std::size_t working = 0;
  std::optional<AgentError> error;
  std::shared_ptr<Cancellation> cancellation;
};

Result<Part> read_part(const Json& item) {
  Part part;
  auto url = required_string(item, "url");
  if (!url) return fail(std::move(url.error()));
  part.url = std::move(*url);
  if (!part.url.starts_with("https://") && !part.url.starts_with("http://")) {
    return fail(invalid("parts", "A part's url must be http or https"));
  }
  auto number = optional_number(item, "partNumber");
  auto offset = optional_number(item, "offset");
  auto size = optional_number(item, "size");
  if (!number || !offset || !size || !*number || !*offset || !*size || **number < 1 || **offset < 0 ||
      **size < 1) {
    return fail(invalid("parts", "A part has partNumber, offset and size"));
  }
  part.number = static_cast<int>(**number);
  part.offset = static_cast<std::uint64_t>(**offset);
  part.size = static_cast<std::uint64_t>(**size);
  return part;
}

std::string etag_of(const std::string& headers) {
  std::string_view rest = headers;
  std::string found;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    constexpr std::string_view kName = "etag:";
    const bool etag = line.size() > kName.size() &&
                      std::ranges::equal(line.substr(0, kName.size()), kName, {}, [](char letter) {
                        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
                      });
    if (!etag) continue;
    line.remove_prefix(kName.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    found = std::string(line);
  }
  return found;
}

/// curl reads its part from a pipe, so that no part is ever in memory, and says its length, as presigned URLs
/// ask.
std::string part_command(const std::string& archive, const Part& part) {
  const std::string size = std::to_string(part.size);
  return "set -o pipefail; tail -c +" + std::to_string(part.offset + 1) + " -- " + shell_quote(archive) +
         " 2>/dev/null | head -c " + size +
         " | curl -sS --fail -X PUT --upload-file - -H 'Content-Length: " + size +
         "' -H 'Transfer-Encoding:' -H 'Expect:' -H 'Content-Type: application/octet-stream' "
         "--connect-timeout 10 "
         "--max-time 1800 -D - -o /dev/null " +
         shell_quote(part.url) + "; exit ${PIPESTATUS[2]}";
}

Task<void> work(App& app, std::shared_ptr<Upload> upload, std::shared_ptr<Notifier> done) {
  while (upload->next < upload->parts.size() && !upload->error) {
    Part& part = upload->parts[upload->next++];
    const std::string command = part_command(upload->archive, part);
    auto child = Child::shell(app.runtime, command, "/", app.runtime.base_env(), true);
    if (!child) {
      upload->error = std::move(child.error());
      break;
    }
    auto result = co_await (*child)->collect({}, upload->cancellation.get(), "curl");
    if (!result) {
      upload->error = std::move(result.error());
      break;
    }
    part.etag = etag_of(result->out);
    if (result->exit_code == 0 && !part.etag.empty()) continue;
    AgentError error{"BACKUP_CREATE_FAILED",
                     "Part " + std::to_string(part.number) + " was not uploaded: " +
                         (result->exit_code == 0 ? "the answer has no ETag" : result->err)};
    error.context = {{"dir", ""}, {"stderr", to_utf8(result->err)}, {"exitCode", result->exit_code}};
    upload->error = std::move(error);
  }
  --upload->working;
  done->notify();
}

}  // namespace

Task<Result<Response>> upload_parts(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto upload = std::make_shared<Upload>();
  auto archive = path_field(app, *body, "archivePath");
  if (!archive) co_return fail(std::move(archive.error()));
  upload->archive = std::move(*archive);
  upload->cancellation = request.cancellation;
  const auto parts = body->find("parts");
  if (parts == body->end() || !parts->is_array() || parts->empty() || parts->size() > kMostParts) {
    co_return fail(invalid("parts", "'parts' must be an array of 1 to 10000 parts"));
  }
  for (const auto& item : *parts) {
    if (!item.is_object()) co_return fail(invalid("parts", "A part must be an object"));
    auto part = read_part(item);
    if (!part) co_return fail(std::move(part.error()));
    upload->parts.push_back(std::move(*part));
  }
  auto done = std::make_shared<Notifier>(app.runtime.executor());
  upload->working = std::min(kAtOnce, upload->parts.size());
  for (std::size_t index = upload->working; index > 0; --index) app.runtime.detach(work(app, upload, done));
  while (upload->working > 0) co_await done->wait();
  if (upload->error) co_return fail(std::move(*upload->error));
  Json list = Json::array();
  for (const auto& part : upload->parts) list.push_back({{"partNumber", part.number}, {"etag", part.etag}});
  co_return json_response({{"success", true}, {"parts", std::move(list)}});
}

}  // namespace sandboxd::agent
