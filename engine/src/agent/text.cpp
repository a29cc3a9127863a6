#include "sandboxd/agent/text.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace sandboxd::agent {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the sequence that starts at `at`: positive when whole and valid, 0 when the text ends inside a
/// sequence that could still become valid, -1 when it cannot.
int sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return -1;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t index = 1; index < length; ++index) {
    if (at + index >= text.size()) return 0;
    const unsigned next = byte(at + index);
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (index == 1) {
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (next < low || next > high) return -1;
  }
  return static_cast<int>(length);
}

std::size_t ascii_run(std::string_view text, std::size_t at) {
  const std::size_t start = at;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & 0x8080808080808080U) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at - start;
}

constexpr char kHex[] = "0123456789abcdef";
constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int, 256> base64_values() {
  std::array<int, 256> values{};
  for (auto& value : values) value = -1;
  for (int index = 0; index < 64; ++index) {
    values[static_cast<unsigned char>(kBase64[index])] = index;
  }
  return values;
}
constexpr auto kBase64Values = base64_values();

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::string iso_timestamp(std::int64_t seconds, long nanoseconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03uZ",
                static_cast<unsigned>(nanoseconds / 1000000) % 1000U);
  return std::string(text.data(), length) + fraction.data();
}

std::string iso_timestamp() {
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return iso_timestamp(now.tv_sec, now.tv_nsec);
}

bool is_utf8(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    at += ascii_run(bytes, at);
    if (at >= bytes.size()) break;
    const int length = sequence(bytes, at);
    if (length <= 0) return false;
    at += static_cast<std::size_t>(length);
  }
  return true;
}

std::string Utf8Decoder::feed(std::string_view bytes) {
  std::string joined;
  std::string_view text = bytes;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    pending_.clear();
    joined.append(bytes);
    text = joined;
  }
  std::string out;
  out.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t run = ascii_run(text, at);
    out.append(text.substr(at, run));
    at += run;
    if (at >= text.size()) break;
    const int length = sequence(text, at);
    if (length == 0) {
      pending_ = std::string(text.substr(at));
      break;
    }
    if (length < 0) {
      out.append(kReplacement);
      ++at;
      continue;
    }
    out.append(text.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
  return out;
}

std::string Utf8Decoder::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacement);
}

std::string to_utf8(std::string bytes) {
  if (is_utf8(bytes)) return bytes;
  Utf8Decoder decoder;
  std::string out = decoder.feed(bytes);
  out += decoder.finish();
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(start, at - start));
    start = at + 1;
    switch (byte) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      default:
        out.append("\\u00");
        out.push_back(kHex[byte >> 4U]);
        out.push_back(kHex[byte & 15U]);
    }
  }
  out.append(text.substr(start));
  out.push_back('"');
}

void append_base64(std::string& out, std::string_view bytes) {
  const std::size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4);
  char* to = out.data() + start;
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= 3; left -= 3, from += 3) {
    const unsigned word = (unsigned{from[0]} << 16U) | (unsigned{from[1]} << 8U) | from[2];
    *to++ = kBase64[word >> 18U];
    *to++ = kBase64[(word >> 12U) & 63U];
    *to++ = kBase64[(word >> 6U) & 63U];
    *to++ = kBase64[word & 63U];
  }
  if (left == 0) return;
  const unsigned word = (unsigned{from[0]} << 16U) | (left == 2 ? unsigned{from[1]} << 8U : 0U);
  *to++ = kBase64[word >> 18U];
  *to++ = kBase64[(word >> 12U) & 63U];
  *to++ = left == 2 ? kBase64[(word >> 6U) & 63U] : '=';
  *to++ = '=';
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  if (text.size() % 4 == 1 || (padding != 0 && (text.size() + padding) % 4 != 0)) return std::nullopt;
  std::string out;
  out.resize(text.size() / 4 * 3 + (text.size() % 4 == 0 ? 0 : text.size() % 4 - 1));
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  const auto* from = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t left = text.size();
  int bad = 0;
  for (; left >= 4; left -= 4, from += 4) {
    const int a = kBase64Values[from[0]];
    const int b = kBase64Values[from[1]];
    const int c = kBase64Values[from[2]];
    const int d = kBase64Values[from[3]];
    bad |= a | b | c | d;
    const auto word = (static_cast<unsigned>(a) << 18U) | (static_cast<unsigned>(b) << 12U) |
                      (static_cast<unsigned>(c) << 6U) | static_cast<unsigned>(d);
    *to++ = static_cast<unsigned char>(word >> 16U);
    *to++ = static_cast<unsigned char>(word >> 8U);
    *to++ = static_cast<unsigned char>(word);
  }
  if (left != 0) {
    const int a = kBase64Values[from[0]];
    const int b = kBase64Values[from[1]];
    const int c = left == 3 ? kBase64Values[from[2]] : 0;
    bad |= a | b | c;
    const auto word = (static_cast<unsigned>(a) << 18U) | (static_cast<unsigned>(b) << 12U) |
                      (static_cast<unsigned>(c) << 6U);
    *to++ = static_cast<unsigned char>(word >> 16U);
    if (left == 3) *to++ = static_cast<unsigned char>(word >> 8U);
  }
  if (bad < 0) return std::nullopt;
  return out;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out.push_back(text[at]);
      continue;
    }
    if (at + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return out;
}

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> fields;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    std::string pair(query.substr(0, end));
    query.remove_prefix(std::min(end + 1, query.size()));
    std::ranges::replace(pair, '+', ' ');
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto key = percent_decode(std::string_view(pair).substr(0, equals));
    auto value = percent_decode(std::string_view(pair).substr(std::min(equals + 1, pair.size())));
    if (key && value && !key->empty()) fields[*key] = *value;
  }
  return fields;
}

std::string shell_quote(std::string_view text) {
  std::string out = "'";
  for (const char byte : text) {
    if (byte == '\'') {
      out.append("'\\''");
    } else {
      out.push_back(byte);
    }
  }
  out.push_back('\'');
  return out;
}

std::string random_id(std::string_view prefix) {
  std::array<unsigned char, 8> bytes{};
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (count > 0) got += static_cast<std::size_t>(count);
  }
  std::string out(prefix);
  for (const unsigned char byte : bytes) {
    out.push_back(kHex[byte >> 4U]);
    out.push_back(kHex[byte & 15U]);
  }
  return out;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  // Which ends of the text's beginnings the pattern so far can reach: time goes with pattern times text,
  // always.
  std::vector<char> reached(text.size() + 1, 0);
  reached[0] = 1;
  for (std::size_t at = 0; at < pattern.size();) {
    std::vector<char> next(text.size() + 1, 0);
    const bool segment_start = at == 0 || pattern[at - 1] == '/';
    const bool any_path = pattern.substr(at).starts_with("**");
    if (any_path && segment_start && pattern.substr(at).starts_with("**/")) {
      bool open = false;
      for (std::size_t end = 0; end <= text.size(); ++end) {
        next[end] = static_cast<char>(reached[end] != 0 || (open && text[end - 1] == '/'));
        open = open || reached[end] != 0;
      }
      at += 3;
    } else if (pattern[at] == '*') {
      bool open = false;
      for (std::size_t end = 0; end <= text.size(); ++end) {
        if (!any_path && end > 0 && text[end - 1] == '/') open = false;
        open = open || reached[end] != 0;
        next[end] = static_cast<char>(open);
      }
      at += any_path ? 2 : 1;
    } else {
      for (std::size_t end = 0; end < text.size(); ++end) {
        const bool fits = pattern[at] == '?' ? text[end] != '/' : text[end] == pattern[at];
        next[end + 1] = static_cast<char>(reached[end] != 0 && fits);
      }
      ++at;
    }
    reached = std::move(next);
  }
  return reached[text.size()] != 0;
}

}  // namespace sandboxd::agent
