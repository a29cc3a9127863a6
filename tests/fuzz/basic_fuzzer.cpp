// Base64 and Basic credentials: bytes have one spelling, and decoding never invents any.
#include "fuzz.hpp"
#include "sandboxes/placeholders.hpp"
#include "sandboxes/strings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandboxes;
  const std::string_view input = fuzz::text(data, size);
  fuzz::require(base64_decode(base64_encode(input)) == std::string(input),
                "what is encoded decodes to itself");
  if (const auto decoded = base64_decode(input)) {
    fuzz::require(base64_encode(*decoded) == input, "what decodes is the one spelling of its bytes");
  }
  const std::string header = "Basic " + base64_encode(input);
  const RequestView request{"GET", "https://example.com/", {{"authorization", header}}, {}};
  const auto scan = scan_placeholders(request);
  if (scan && input.find("getSecret") == std::string_view::npos) {
    fuzz::require(scan->references.empty(), "credentials that name nothing reference nothing");
  }
  return 0;
}
