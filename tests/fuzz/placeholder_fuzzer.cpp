// A URL, a header value and a body. What has no placeholder stays as it is, and a substituted request has
// none left.
#include "fuzz.hpp"
#include "sandboxes/placeholders.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandboxes;
  const auto lines = fuzz::parts(fuzz::text(data, size), 3);
  RequestView request{
      "POST", lines[0], {{"authorization", lines[1]}, {"x-iterate-secret-template", "json"}}, lines[2]};
  const auto scan = scan_placeholders(request);
  if (!scan) return 0;
  std::vector<std::string> keys;
  for (const Reference& reference : scan->references) keys.push_back(reference_key(reference));
  SecretValues values;
  for (const std::string& key : keys) values.emplace_back(key, "value");
  const auto substituted = substitute_placeholders(request, values);
  if (!substituted) return 0;
  const std::string_view body = substituted->body ? std::string_view(*substituted->body) : lines[2];
  if (scan->references.empty()) {
    fuzz::require(
        substituted->url == lines[0] && substituted->headers[0].second == lines[1] && body == lines[2],
        "a request without placeholders stays as it is");
    return 0;
  }
  RequestView again{"POST", substituted->url, {}, body};
  for (const auto& [name, value] : substituted->headers) again.headers.emplace_back(name, value);
  const auto rescan = scan_placeholders(again);
  fuzz::require(rescan.has_value() && rescan->references.empty(),
                "a substituted request has no placeholder left");
  return 0;
}
