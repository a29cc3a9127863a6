#include "sandboxes/address.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "random.hpp"
#include "sandboxes/url.hpp"

using namespace sandboxes;

TEST_CASE("an address reads back from its own text") {
  tests::Random random(6);
  for (int i = 0; i < 20'000; ++i) {
    Address address;
    address.is_ipv4 = random.chance(2);
    for (std::size_t byte = address.is_ipv4 ? 12 : 0; byte < 16; ++byte) {
      address.bytes[byte] = random.chance(2) ? 0 : static_cast<std::uint8_t>(random.below(256));
    }
    const std::string text = to_text(address);
    INFO(text);
    const auto again = parse_address(text);
    REQUIRE(again);
    REQUIRE(to_text(*again) == text);
    if (again->is_ipv4 == address.is_ipv4) REQUIRE(*again == address);
  }
}

TEST_CASE("every spelling of an IPv4 address is one host") {
  tests::Random random(7);
  for (int i = 0; i < 5'000; ++i) {
    const auto value = static_cast<std::uint32_t>(random.next());
    const auto part = [value](int shift) { return std::to_string((value >> shift) & 255U); };
    char hex[16];
    char octal[32];
    std::snprintf(hex, sizeof hex, "0x%x", value);
    std::snprintf(octal, sizeof octal, "0%o.%u", value >> 24, value & 0xFFFFFFU);
    const std::string dotted = part(24) + "." + part(16) + "." + part(8) + "." + part(0);
    char mapped[40];
    std::snprintf(mapped, sizeof mapped, "[::ffff:%x:%x]", value >> 16, value & 0xFFFFU);
    for (const std::string& spelling : {dotted, dotted + ".", std::to_string(value), std::string(hex),
                                        std::string(octal), std::string(mapped)}) {
      const auto host = parse_host(spelling);
      INFO(spelling);
      REQUIRE(host);
      REQUIRE(host->text == dotted);
    }
  }
}
