#include <algorithm>
#include <array>

#include "sandboxes/environment.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

struct KeyPrefix {
  std::string_view prefix;
  std::size_t more;  ///< characters of the key that have to follow, so that words are not taken for keys
  std::string_view kind;
};

constexpr std::array<KeyPrefix, 24> kPrefixes = {{
    {"sk-", 3, "an API key (sk-)"},
    {"sk_live_", 3, "a Stripe key (sk_live_)"},
    {"sk_test_", 3, "a Stripe key (sk_test_)"},
    {"rk_live_", 3, "a Stripe key (rk_live_)"},
    {"whsec_", 8, "a webhook secret (whsec_)"},
    {"ghp_", 3, "a GitHub token (ghp_)"},
    {"gho_", 3, "a GitHub token (gho_)"},
    {"ghu_", 3, "a GitHub token (ghu_)"},
    {"ghs_", 3, "a GitHub token (ghs_)"},
    {"ghr_", 3, "a GitHub token (ghr_)"},
    {"github_pat_", 3, "a GitHub token (github_pat_)"},
    {"glpat-", 3, "a GitLab token (glpat-)"},
    {"AKIA", 12, "an AWS access key (AKIA)"},
    {"ASIA", 12, "an AWS access key (ASIA)"},
    {"AIza", 30, "a Google API key (AIza)"},
    {"ya29.", 10, "a Google access token (ya29.)"},
    {"xoxb-", 3, "a Slack token (xoxb-)"},
    {"xoxp-", 3, "a Slack token (xoxp-)"},
    {"xoxa-", 3, "a Slack token (xoxa-)"},
    {"xoxs-", 3, "a Slack token (xoxs-)"},
    {"xapp-", 3, "a Slack token (xapp-)"},
    {"npm_", 30, "an npm token (npm_)"},
    {"hf_", 30, "a Hugging Face token (hf_)"},
    {"SG.", 30, "a SendGrid key (SG.)"},
}};

/// In the middle of a longer text a prefix may be part of a name ("/opt/sk-learn"); a key goes on for longer.
constexpr std::size_t kMoreInside = 16;

bool is_key_character(char c) {
  return is_alnum(c) || c == '-' || c == '_';
}
bool is_base64url(char c) {
  return is_key_character(c);
}

std::size_t run_length(std::string_view text, bool (*accept)(char)) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), accept) - text.begin());
}

std::optional<std::string_view> key_at(std::string_view text, bool at_start) {
  for (const KeyPrefix& one : kPrefixes) {
    if (!text.starts_with(one.prefix)) continue;
    const std::size_t wanted = at_start ? one.more : std::max(one.more, kMoreInside);
    if (run_length(text.substr(one.prefix.size()), is_key_character) >= wanted) return one.kind;
  }
  return std::nullopt;
}

/// Three base64url parts, the first of which is a JSON object (`eyJ` is `{"`).
bool is_jwt_at(std::string_view text) {
  constexpr std::size_t kLeastPart = 4;
  if (!text.starts_with("eyJ")) return false;
  for (int dots = 0; dots < 2; ++dots) {
    const std::size_t part = run_length(text, is_base64url);
    if (part < kLeastPart || part >= text.size() || text[part] != '.') return false;
    text.remove_prefix(part + 1);
  }
  return run_length(text, is_base64url) >= kLeastPart;
}

/// Certificates and public keys are no secrets.
bool holds_pem_secret(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    const std::string_view label =
        text.substr(at + kBegin.size(), text.find("-----", at + kBegin.size()) - at - kBegin.size());
    if (label.find("CERTIFICATE") == std::string_view::npos && label.find("PUBLIC") == std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::string_view> looks_like_secret(std::string_view value) {
  if (holds_pem_secret(value)) return "a PEM block";
  std::string_view text = value;
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && is_key_character(text[at - 1])) continue;
    if (is_jwt_at(text.substr(at))) return "a JSON Web Token";
    if (const auto kind = key_at(text.substr(at), at == 0)) return kind;
  }
  return std::nullopt;
}

}  // namespace sandboxes
