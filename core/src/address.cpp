#include "sandboxes/address.hpp"

#include <algorithm>

#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

using Groups = std::array<std::uint16_t, 8>;

Address make_ipv4(std::uint32_t value) {
  Address address;
  address.is_ipv4 = true;
  for (std::size_t i = 0; i < 4; ++i)
    address.bytes[12 + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  return address;
}

/// A number of the URL standard's IPv4 parser; nothing when it is none. Values past 2^32 come out as 2^32.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::uint64_t radix = 10;
  if (text.size() >= 2 && text[0] == '0' && to_lower(text[1]) == 'x') {
    radix = 16;
    text.remove_prefix(2);
  } else if (text.size() >= 2 && text[0] == '0') {
    radix = 8;
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = hex_value(c);
    if (digit < 0 || static_cast<std::uint64_t>(digit) >= radix) return std::nullopt;
    value =
        std::min<std::uint64_t>(value * radix + static_cast<std::uint64_t>(digit), std::uint64_t{1} << 32);
  }
  return value;
}

/// One to four hexadecimal digits at `at`.
std::optional<std::uint16_t> read_group(std::string_view text, std::size_t& at) {
  unsigned value = 0;
  const std::size_t start = at;
  while (at < text.size() && at - start < 4 && hex_value(text[at]) >= 0) {
    value = value * 16 + static_cast<unsigned>(hex_value(text[at++]));
  }
  if (at == start) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

/// The dotted end of `::ffff:1.2.3.4`: four plain decimal bytes, no leading zeros.
std::optional<std::uint32_t> read_dotted(std::string_view text) {
  std::uint32_t value = 0;
  std::size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && (at >= text.size() || text[at++] != '.')) return std::nullopt;
    const std::size_t start = at;
    unsigned byte = 0;
    while (at < text.size() && is_digit(text[at]) && at - start < 3) {
      byte = byte * 10 + static_cast<unsigned>(text[at++] - '0');
    }
    if (at == start || byte > 255 || (at - start > 1 && text[start] == '0')) return std::nullopt;
    value = value << 8 | byte;
  }
  return at == text.size() ? std::optional(value) : std::nullopt;
}

Address from_groups(const Groups& groups) {
  Address address;
  for (std::size_t i = 0; i < 8; ++i) {
    address.bytes[2 * i] = static_cast<std::uint8_t>(groups[i] >> 8);
    address.bytes[2 * i + 1] = static_cast<std::uint8_t>(groups[i] & 0xFF);
  }
  const bool mapped =
      std::all_of(groups.begin(), groups.begin() + 5, [](auto group) { return group == 0; }) &&
      groups[5] == 0xFFFF;
  if (mapped) return make_ipv4(static_cast<std::uint32_t>(groups[6]) << 16 | groups[7]);
  return address;
}

Groups to_groups(const Address& address) {
  Groups groups{};
  for (std::size_t i = 0; i < 8; ++i) {
    groups[i] = static_cast<std::uint16_t>(address.bytes[2 * i] << 8 | address.bytes[2 * i + 1]);
  }
  return groups;
}

std::uint32_t ipv4_value(const Address& address) {
  std::uint32_t value = 0;
  for (std::size_t i = 12; i < 16; ++i) value = value << 8 | address.bytes[i];
  return value;
}

struct Block {
  std::uint32_t network;
  int bits;
  AddressClass address_class;
};

constexpr std::uint32_t ipv4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// The first that holds decides, so single addresses come before the blocks around them.
constexpr std::array<Block, 19> kBlocks = {{
    {ipv4(169, 254, 169, 254), 32, AddressClass::metadata},  // AWS, Google, Azure, DigitalOcean, ...
    {ipv4(169, 254, 170, 2), 32, AddressClass::metadata},    // AWS ECS
    {ipv4(169, 254, 170, 23), 32, AddressClass::metadata},   // AWS EKS
    {ipv4(100, 100, 100, 200), 32, AddressClass::metadata},  // Alibaba
    {ipv4(192, 0, 0, 192), 32, AddressClass::metadata},      // Oracle
    {ipv4(168, 63, 129, 16), 32, AddressClass::metadata},    // Azure's host agent
    {ipv4(0, 0, 0, 0), 32, AddressClass::unspecified},
    {ipv4(0, 0, 0, 0), 8, AddressClass::reserved},
    {ipv4(10, 0, 0, 0), 8, AddressClass::private_network},
    {ipv4(100, 64, 0, 0), 10, AddressClass::shared},
    {ipv4(127, 0, 0, 0), 8, AddressClass::loopback},
    {ipv4(169, 254, 0, 0), 16, AddressClass::link_local},
    {ipv4(172, 16, 0, 0), 12, AddressClass::private_network},
    {ipv4(192, 0, 0, 0), 24, AddressClass::reserved},
    {ipv4(192, 168, 0, 0), 16, AddressClass::private_network},
    {ipv4(198, 18, 0, 0), 15, AddressClass::reserved},
    {ipv4(224, 0, 0, 0), 4, AddressClass::multicast},
    {ipv4(240, 0, 0, 0), 4, AddressClass::reserved},
    {ipv4(255, 255, 255, 255), 32, AddressClass::reserved},
}};

AddressClass classify_ipv4(std::uint32_t value) {
  for (const Block& block : kBlocks) {
    const std::uint32_t mask = ~std::uint32_t{0} << (32 - block.bits);
    if ((value & mask) == block.network) return block.address_class;
  }
  return AddressClass::public_address;
}

constexpr Groups kAwsMetadata = {0xFD00, 0x0EC2, 0, 0, 0, 0, 0, 0x0254};
constexpr Groups kGoogleMetadata = {0xFD20, 0x00CE, 0, 0, 0, 0, 0, 0x0254};

AddressClass classify_ipv6(const Groups& g) {
  const auto embedded = [&g](std::size_t i) { return static_cast<std::uint32_t>(g[i]) << 16 | g[i + 1]; };
  const bool first_four_zero = g[0] == 0 && g[1] == 0 && g[2] == 0 && g[3] == 0;
  if (first_four_zero && g[4] == 0 && g[5] == 0) {
    if (g[6] == 0 && g[7] == 0) return AddressClass::unspecified;
    if (g[6] == 0 && g[7] == 1) return AddressClass::loopback;
    return classify_ipv4(embedded(6));
  }
  if (first_four_zero && g[4] == 0xFFFF && g[5] == 0) return classify_ipv4(embedded(6));
  if (g == kAwsMetadata || g == kGoogleMetadata) return AddressClass::metadata;
  if ((g[0] & 0xFFC0) == 0xFE80) return AddressClass::link_local;
  if ((g[0] & 0xFFC0) == 0xFEC0) return AddressClass::private_network;
  if ((g[0] & 0xFE00) == 0xFC00) return AddressClass::unique_local;
  if ((g[0] & 0xFF00) == 0xFF00) return AddressClass::multicast;
  if (g[0] == 0x0064 && g[1] == 0xFF9B) {
    return g[2] == 0 && g[3] == 0 && g[4] == 0 && g[5] == 0 ? classify_ipv4(embedded(6))
                                                            : AddressClass::reserved;
  }
  if (g[0] == 0x2002) return classify_ipv4(embedded(1));
  if (g[0] == 0x2001 && g[1] == 0) return classify_ipv4(~embedded(6));
  if (g[0] == 0x0100 && g[1] == 0 && g[2] == 0 && g[3] == 0) return AddressClass::reserved;
  return AddressClass::public_address;
}

}  // namespace

std::string_view class_name(AddressClass address_class) {
  switch (address_class) {
    case AddressClass::public_address:
      return "public";
    case AddressClass::unspecified:
      return "unspecified";
    case AddressClass::loopback:
      return "loopback";
    case AddressClass::private_network:
      return "private";
    case AddressClass::shared:
      return "shared";
    case AddressClass::link_local:
      return "link-local";
    case AddressClass::unique_local:
      return "unique-local";
    case AddressClass::multicast:
      return "multicast";
    case AddressClass::metadata:
      return "metadata";
    case AddressClass::reserved:
      return "reserved";
  }
  return "reserved";
}

bool ends_in_number(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::size_t dot = host.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  if (last.empty()) return false;
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  const bool hexadecimal = last.size() >= 2 && last[0] == '0' && to_lower(last[1]) == 'x';
  return hexadecimal && std::all_of(last.begin() + 2, last.end(), [](char c) { return hex_value(c) >= 0; });
}

std::optional<Address> parse_ipv4(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  std::array<std::uint64_t, 4> parts{};
  std::size_t count = 0;
  for (;;) {
    const std::size_t dot = text.find('.');
    const auto number = parse_number(text.substr(0, dot));
    if (!number || count == 4) return std::nullopt;
    parts[count++] = *number;
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  std::uint64_t value = parts[count - 1];
  if (value >= std::uint64_t{1} << (8 * (5 - count))) return std::nullopt;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (parts[i] > 255) return std::nullopt;
    value += parts[i] << (8 * (3 - i));
  }
  return make_ipv4(static_cast<std::uint32_t>(value));
}

std::optional<Address> parse_ipv6(std::string_view text) {
  Groups groups{};
  std::size_t count = 0;
  std::optional<std::size_t> gap;
  std::size_t at = 0;
  if (text.starts_with("::")) {
    gap = 0;
    at = 2;
  }
  while (at < text.size()) {
    if (count == 8) return std::nullopt;
    const std::size_t start = at;
    const auto group = read_group(text, at);
    if (at < text.size() && text[at] == '.') {
      const auto dotted = read_dotted(text.substr(start));
      if (!dotted || count > 6) return std::nullopt;
      groups[count++] = static_cast<std::uint16_t>(*dotted >> 16);
      groups[count++] = static_cast<std::uint16_t>(*dotted & 0xFFFF);
      break;
    }
    if (!group) return std::nullopt;
    groups[count++] = *group;
    if (at == text.size()) break;
    if (text[at++] != ':' || at == text.size()) return std::nullopt;
    if (text[at] == ':') {
      if (gap) return std::nullopt;
      gap = count;
      ++at;
    }
  }
  if (!gap) return count == 8 ? std::optional(from_groups(groups)) : std::nullopt;
  if (count == 8) return std::nullopt;
  std::rotate(groups.begin() + static_cast<std::ptrdiff_t>(*gap),
              groups.begin() + static_cast<std::ptrdiff_t>(count), groups.end());
  return from_groups(groups);
}

Result<Address> parse_address(std::string_view text) {
  std::string_view bare = text;
  if (bare.size() >= 2 && bare.front() == '[' && bare.back() == ']') bare = bare.substr(1, bare.size() - 2);
  std::optional<Address> address;
  if (bare.find(':') != std::string_view::npos) {
    const std::size_t zone = bare.find('%');
    const bool empty_zone = zone != std::string_view::npos && zone + 1 == bare.size();
    if (!empty_zone) address = parse_ipv6(bare.substr(0, zone));
  } else if (bare.size() == text.size() && ends_in_number(bare)) {
    address = parse_ipv4(bare);
  }
  if (!address) return fail(InvalidAddress{std::string(text)});
  return *address;
}

AddressClass classify(const Address& address) {
  return address.is_ipv4 ? classify_ipv4(ipv4_value(address)) : classify_ipv6(to_groups(address));
}

std::string to_text(const Address& address) {
  std::string text;
  if (address.is_ipv4) {
    for (std::size_t i = 12; i < 16; ++i) text += (i > 12 ? "." : "") + std::to_string(address.bytes[i]);
    return text;
  }
  const Groups groups = to_groups(address);
  std::size_t best = 8;
  std::size_t best_length = 1;  // a single zero group is written out
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t length = 0;
    while (i + length < 8 && groups[i + length] == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      text += "::";
      i += best_length - 1;
      continue;
    }
    if (!text.empty() && !text.ends_with(':')) text += ':';
    bool started = false;
    for (int shift = 12; shift >= 0; shift -= 4) {
      const unsigned digit = (static_cast<unsigned>(groups[i]) >> shift) & 15U;
      started = started || digit != 0 || shift == 0;
      if (started) text += kDigits[digit];
    }
  }
  return text;
}

std::optional<AddressClass> classify_name(std::string_view host) {
  constexpr std::array<std::string_view, 7> kMetadataNames = {
      "metadata",      "metadata.google.internal",   "metadata.goog",     "metadata.azure.internal",
      "instance-data", "instance-data.ec2.internal", "metadata.internal",
  };
  constexpr std::array<std::string_view, 4> kLoopbackNames = {"localhost", "localhost.localdomain",
                                                              "ip6-localhost", "ip6-loopback"};
  if (host.ends_with(".localhost")) return AddressClass::loopback;
  for (const auto name : kLoopbackNames) {
    if (host == name) return AddressClass::loopback;
  }
  for (const auto name : kMetadataNames) {
    if (host == name) return AddressClass::metadata;
  }
  return std::nullopt;
}

}  // namespace sandboxes
