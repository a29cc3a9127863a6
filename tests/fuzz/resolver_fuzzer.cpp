// The resolver answers whatever a container sends to it: always well-formed, for one question only, and with
// addresses that lead back to the name that was asked for.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sandboxd/dns.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::uint8_t byte(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

void check(std::string_view query, std::string_view response) {
  constexpr std::size_t header = 12;
  require(response.size() >= header && response.substr(0, 2) == query.substr(0, 2));
  require((byte(response, 2) & 0x80U) != 0);
  const unsigned answers = byte(response, 7);
  require(byte(response, 6) == 0 && answers <= 2);
  const bool has_question = byte(response, 5) == 1;
  require(answers == 0 || (has_question && (byte(response, 3) & 0x0fU) == 0));
  // The question comes back as it was; two addresses or one name are all that may follow.
  constexpr std::size_t most_answer = 12 + 255;
  require(response.size() <= query.size() + 2 * most_answer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static sandboxd::NameTable names(64);
  const std::string_view query(reinterpret_cast<const char*>(data), size);
  for (const bool ipv6 : {false, true}) {
    if (const auto response = sandboxd::answer_dns(query, names, ipv6)) check(query, *response);
  }
  const std::string name(query.substr(0, 200));
  const auto number = names.number_of(name);
  require(names.name_of_v4(sandboxd::NameTable::v4(number)) == name);
  require(names.name_of_v6(sandboxd::NameTable::v6(number)) == name);
  return 0;
}
