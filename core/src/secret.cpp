#include "sandboxes/secret.hpp"

#include <algorithm>

#include "sandboxes/http.hpp"
#include "sandboxes/strings.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

namespace {

constexpr std::string_view kStrictMarks = "-_.~";

void add_once(std::vector<std::string>& list, std::string value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

Result<std::string> check_origin(std::string_view text) {
  const auto refuse = [&](std::string reason) {
    return fail(SecretOriginInvalid{std::string(text), std::move(reason)});
  };
  if (text.find('*') != std::string_view::npos) return refuse("patterns are not allowed here");
  const auto url = parse_url(text);
  if (!url) return refuse(describe(url.error()).message);
  if (url->has_userinfo) return refuse("it holds a user name or password");
  const std::string_view path = url->path.of(text);
  if (!path.empty() && path != "/") return refuse("it has a path");
  if (url->has_query || text.find('#') != std::string_view::npos) return refuse("it has a query or fragment");
  if (url->host.trailing_dot) return refuse("its host ends with a dot");
  return origin_text(*url);
}

/// As HTML forms and RFC 3986 do it: everything but the unreserved characters.
std::string encode_strictly(std::string_view text, std::string_view space) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      out += space;
    } else if (is_alnum(c) || kStrictMarks.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      constexpr std::string_view digits = "0123456789ABCDEF";
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

std::string lower_escapes(std::string text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] != '%') continue;
    text[i + 1] = to_lower(text[i + 1]);
    text[i + 2] = to_lower(text[i + 2]);
    i += 2;
  }
  return text;
}

/// As JSON.stringify writes it between the quotes.
std::string json_escaped(std::string_view text, bool escape_slash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || (c == '/' && escape_slash)) {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += {digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

/// The part of base64 that only the value decides, when `offset` bytes stand before it in its group of three.
std::string base64_core(std::string_view value, std::size_t offset) {
  constexpr std::size_t kShared[] = {0, 2, 3};
  const std::string encoded = base64_encode(std::string(offset, '\0') + std::string(value));
  const std::size_t end = (offset + value.size()) * 8 / 6;
  return encoded.substr(kShared[offset], end - kShared[offset]);
}

std::string url_safe(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

void add_patterns(std::vector<std::string>& patterns, std::string_view value) {
  add_once(patterns, std::string(value));
  add_once(patterns, json_escaped(value, false));
  add_once(patterns, json_escaped(value, true));
  for (const std::string& encoded :
       {encode_uri_component(value), encode_strictly(value, "%20"), encode_strictly(value, "+")}) {
    add_once(patterns, lower_escapes(encoded));
    add_once(patterns, encoded);
  }
  for (std::size_t offset = 0; offset < 3; ++offset) {
    const std::string core = base64_core(value, offset);
    add_once(patterns, core);
    add_once(patterns, url_safe(core));
    // Base64 in a query has its + and / percent-encoded.
    add_once(patterns, encode_uri_component(core));
  }
}

}  // namespace

Result<void> check_secret_material(std::span<const std::string_view> strings, std::int64_t json_bytes) {
  if (json_bytes > kMaxSecretBytes) return fail(SecretMaterialTooLarge{json_bytes, kMaxSecretBytes});
  const bool has_empty =
      std::any_of(strings.begin(), strings.end(), [](std::string_view value) { return value.empty(); });
  if (strings.empty() || has_empty) return fail(SecretMaterialEmpty{});
  return {};
}

Result<std::vector<std::string>> check_secret_origins(std::span<const std::string_view> origins) {
  if (origins.empty()) return fail(SecretOriginInvalid{"", "a secret needs at least one"});
  if (origins.size() > kMaxSecretOrigins) {
    return fail(
        SecretOriginInvalid{std::string(origins.front()),
                            "a secret has at most " + std::to_string(kMaxSecretOrigins) + " of them"});
  }
  std::vector<std::string> canonical;
  for (const std::string_view origin : origins) {
    auto checked = check_origin(origin);
    if (!checked) return propagate(checked);
    add_once(canonical, std::move(*checked));
  }
  return canonical;
}

std::vector<std::string> scrub_patterns(std::span<const std::string_view> values) {
  std::vector<std::string> patterns;
  for (const std::string_view value : values) {
    if (value.size() >= kMinScrubBytes) add_patterns(patterns, value);
  }
  return patterns;
}

}  // namespace sandboxes
