// Two names never meet: what parses derives to itself, and what derives parses to itself.
#include "fuzz.hpp"
#include "sandboxes/identity.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandboxes;
  const std::string_view input = fuzz::text(data, size);
  if (const auto identity = parse_durable_object_name(input)) {
    const auto name = durable_object_name(*identity);
    fuzz::require(name.has_value() && *name == input, "a name that parses is the name of what it parses to");
  }
  const auto lines = fuzz::parts(input, 2);
  const Identity identity{std::string(lines[0]), std::string(lines[1])};
  if (const auto name = durable_object_name(identity)) {
    const auto parsed = parse_durable_object_name(*name);
    fuzz::require(parsed.has_value() && *parsed == identity, "a name parses back to what made it");
  }
  if (check_secret_path(input))
    fuzz::require(check_stream_path(input).has_value(), "a secret path is a stream path");
  if (check_sandbox_path(input))
    fuzz::require(check_stream_path(input).has_value(), "a sandbox path is a stream path");
  return 0;
}
