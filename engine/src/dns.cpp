#include "sandboxd/dns.hpp"

#include <algorithm>

namespace sandboxd {
namespace {

constexpr std::array<std::uint8_t, 8> v6_prefix{0xfd, 0x69, 0x74, 0x65, 0x72, 0x61, 0x74, 0x65};
constexpr std::uint32_t v4_base = (198U << 24U) | (18U << 16U);
constexpr std::uint32_t v4_size = 1U << 17U;

constexpr std::size_t header_size = 12;
constexpr std::uint16_t type_a = 1;
constexpr std::uint16_t type_ptr = 12;
constexpr std::uint16_t type_aaaa = 28;
constexpr std::uint16_t type_any = 255;
constexpr std::uint16_t class_in = 1;
constexpr std::uint8_t code_none = 0;
constexpr std::uint8_t code_format = 1;
constexpr std::uint8_t code_no_name = 3;
constexpr std::uint8_t code_not_implemented = 4;
constexpr std::uint32_t ttl_seconds = 60;

struct Question {
  std::string name;   ///< lower case, without the final dot
  bool plain = true;  ///< only characters that a host name may have
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::size_t end = 0;  ///< where it ends in the query
};

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

std::uint16_t word_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint16_t>((byte_at(text, at) << 8U) | byte_at(text, at + 1));
}

std::optional<Question> read_question(std::string_view query) {
  Question question;
  std::size_t at = header_size;
  for (;;) {
    if (at >= query.size()) return std::nullopt;
    const std::size_t length = byte_at(query, at++);
    if (length == 0) break;
    // A compressed name has nothing to point to in the first question.
    if (length > 63 || at + length > query.size() || question.name.size() + length > 253) return std::nullopt;
    if (!question.name.empty()) question.name += '.';
    for (std::size_t index = 0; index < length; ++index) {
      char c = query[at + index];
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      const bool host = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      question.plain = question.plain && host;
      question.name += c;
    }
    at += length;
  }
  if (at + 4 > query.size()) return std::nullopt;
  question.type = word_at(query, at);
  question.klass = word_at(query, at + 2);
  question.end = at + 4;
  return question;
}

void put_word(std::string& out, std::uint32_t value) {
  out += static_cast<char>((value >> 8U) & 0xffU);
  out += static_cast<char>(value & 0xffU);
}

std::string begin_response(std::string_view query, std::uint8_t code, bool with_question) {
  std::string out(query.substr(0, 2));
  const auto recursion_desired = static_cast<std::uint8_t>(byte_at(query, 2) & 0x01U);
  const auto operation = static_cast<std::uint8_t>(byte_at(query, 2) & 0x78U);
  out += static_cast<char>(0x80U | operation | recursion_desired);
  out += static_cast<char>(0x80U | code);
  put_word(out, with_question ? 1 : 0);
  put_word(out, 0);
  put_word(out, 0);
  put_word(out, 0);
  return out;
}

void add_record(std::string& response, std::uint16_t type, std::string_view data) {
  response[7] = static_cast<char>(response[7] + 1);
  put_word(response, 0xc00c);  // the question's name
  put_word(response, type);
  put_word(response, class_in);
  put_word(response, ttl_seconds >> 16U);
  put_word(response, ttl_seconds & 0xffffU);
  put_word(response, static_cast<std::uint32_t>(data.size()));
  response.append(data);
}

template <std::size_t N>
std::string text_of(const std::array<std::uint8_t, N>& bytes) {
  return {bytes.begin(), bytes.end()};
}

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

// "4.3.18.198.in-addr.arpa" to the name behind 198.18.3.4.
std::optional<std::string> reverse_name(std::string_view name, const NameTable& names) {
  constexpr std::string_view tail = ".in-addr.arpa";
  if (!ends_with(name, tail)) return std::nullopt;
  name.remove_suffix(tail.size());
  std::array<std::uint8_t, 4> address{};
  for (std::size_t index = 4; index-- > 0;) {
    const auto dot = name.find('.');
    const auto part = name.substr(0, dot);
    unsigned value = 0;
    if (part.empty() || part.size() > 3) return std::nullopt;
    for (const char c : part) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    if (value > 255 || (dot == std::string_view::npos) != (index == 0)) return std::nullopt;
    address[index] = static_cast<std::uint8_t>(value);
    if (index > 0) name.remove_prefix(dot + 1);
  }
  return names.name_of_v4(address);
}

std::string wire_name(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const auto dot = std::min(name.find('.'), name.size());
    out += static_cast<char>(dot);
    out.append(name.substr(0, dot));
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  out += '\0';
  return out;
}

std::string answer_question(std::string_view query, const Question& question, NameTable& names, bool ipv6) {
  const auto begin = [&](std::uint8_t code) {
    auto response = begin_response(query, code, true);
    response.append(query.substr(header_size, question.end - header_size));
    return response;
  };
  if (question.type == type_ptr) {
    const auto name = reverse_name(question.name, names);
    if (!name) return begin(code_no_name);
    auto response = begin(code_none);
    add_record(response, type_ptr, wire_name(*name));
    return response;
  }
  const bool usable = question.plain && !question.name.empty() && !ends_with(question.name, ".arpa") &&
                      question.klass == class_in;
  if (!usable) return begin(code_no_name);
  auto response = begin(code_none);
  const bool local = question.name == "localhost" || ends_with(question.name, ".localhost");
  const bool wants_v4 = question.type == type_a || question.type == type_any;
  const bool wants_v6 = ipv6 && (question.type == type_aaaa || question.type == type_any);
  if (local) {
    constexpr std::array<std::uint8_t, 4> loopback_v4{127, 0, 0, 1};
    constexpr std::array<std::uint8_t, 16> loopback_v6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    if (wants_v4) add_record(response, type_a, text_of(loopback_v4));
    if (wants_v6) add_record(response, type_aaaa, text_of(loopback_v6));
    return response;
  }
  if (!wants_v4 && !wants_v6) return response;
  const std::uint32_t number = names.number_of(question.name);
  if (wants_v4) add_record(response, type_a, text_of(NameTable::v4(number)));
  if (wants_v6) add_record(response, type_aaaa, text_of(NameTable::v6(number)));
  return response;
}

}  // namespace

std::uint32_t NameTable::number_of(const std::string& name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->number;
  }
  // Number 0 would be the network's own address.
  std::uint32_t number = static_cast<std::uint32_t>(recent_.size()) + 1;
  if (recent_.size() >= capacity_) {
    const auto oldest = std::prev(recent_.end());
    number = oldest->number;
    by_name_.erase(oldest->name);
    by_number_.erase(number);
    recent_.pop_back();
  }
  recent_.push_front({name, number});
  by_name_[name] = recent_.begin();
  by_number_[number] = recent_.begin();
  return number;
}

std::optional<std::string> NameTable::name_of(std::uint32_t number) const {
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return std::nullopt;
  return found->second->name;
}

std::optional<std::string> NameTable::name_of_v4(const std::array<std::uint8_t, 4>& address) const {
  const std::uint32_t value = (std::uint32_t{address[0]} << 24U) | (std::uint32_t{address[1]} << 16U) |
                              (std::uint32_t{address[2]} << 8U) | address[3];
  if (value < v4_base || value >= v4_base + v4_size) return std::nullopt;
  return name_of(value - v4_base);
}

std::optional<std::string> NameTable::name_of_v6(const std::array<std::uint8_t, 16>& address) const {
  if (!std::equal(v6_prefix.begin(), v6_prefix.end(), address.begin())) return std::nullopt;
  for (std::size_t index = 8; index < 12; ++index) {
    if (address[index] != 0) return std::nullopt;
  }
  return name_of((std::uint32_t{address[12]} << 24U) | (std::uint32_t{address[13]} << 16U) |
                 (std::uint32_t{address[14]} << 8U) | address[15]);
}

std::array<std::uint8_t, 4> NameTable::v4(std::uint32_t number) {
  const std::uint32_t value = v4_base + number % v4_size;
  return {static_cast<std::uint8_t>(value >> 24U), static_cast<std::uint8_t>(value >> 16U),
          static_cast<std::uint8_t>(value >> 8U), static_cast<std::uint8_t>(value)};
}

std::array<std::uint8_t, 16> NameTable::v6(std::uint32_t number) {
  std::array<std::uint8_t, 16> address{};
  std::copy(v6_prefix.begin(), v6_prefix.end(), address.begin());
  for (std::size_t index = 0; index < 4; ++index) {
    address[15 - index] = static_cast<std::uint8_t>(number >> (8U * index));
  }
  return address;
}

std::optional<std::string> answer_dns(std::string_view query, NameTable& names, bool ipv6) {
  constexpr std::uint8_t response_bit = 0x80;
  if (query.size() < header_size || (byte_at(query, 2) & response_bit) != 0) return std::nullopt;
  if ((byte_at(query, 2) & 0x78U) != 0) return begin_response(query, code_not_implemented, false);
  const auto question = word_at(query, 4) == 1 ? read_question(query) : std::nullopt;
  if (!question) return begin_response(query, code_format, false);
  return answer_question(query, *question, names, ipv6);
}

}  // namespace sandboxd
