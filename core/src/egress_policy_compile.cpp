#include <algorithm>

#include "ordering.hpp"
#include "policy_schemes.hpp"
#include "sandboxes/egress_policy.hpp"
#include "sandboxes/http.hpp"
#include "sandboxes/identity.hpp"
#include "sandboxes/strings.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

namespace {

constexpr std::size_t kMaxRuleIdBytes = 128;

/// Turns one rule as written into its canonical form.
class RuleCompiler {
 public:
  explicit RuleCompiler(const PolicyRuleInput& input) : input_(input) {}

  Result<PolicyRule> run() {
    rule_.id = input_.id;
    rule_.allow = input_.allow;
    if (input_.id.empty() || input_.id.size() > kMaxRuleIdBytes)
      return refuse("id", "must have 1 to 128 bytes");
    for (const auto step : {&RuleCompiler::hosts, &RuleCompiler::schemes, &RuleCompiler::ports,
                            &RuleCompiler::methods, &RuleCompiler::paths, &RuleCompiler::secret_paths}) {
      if (auto done = (this->*step)(); !done) return propagate(done);
    }
    return std::move(rule_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view field, std::string reason) const {
    return fail(InvalidPolicy{input_.id, std::string(field), std::move(reason)});
  }

  /// An empty list reads like "nothing" to one and "everything" to another.
  template <class List>
  [[nodiscard]] Result<void> not_empty(std::string_view field, const List& list) const {
    if (list && list->empty()) return refuse(field, "is an empty list; leave it out to match everything");
    return {};
  }

  Result<void> hosts() {
    if (auto fine = not_empty("hosts", input_.hosts); !fine || !input_.hosts) return fine;
    rule_.any_host = false;
    for (const std::string& text : *input_.hosts) {
      if (auto done = host(text); !done) return done;
    }
    sort_unique(rule_.hosts);
    sort_unique(rule_.host_suffixes);
    return {};
  }

  Result<void> host(const std::string& text) {
    if (text == "*") {
      rule_.any_host = true;
      return {};
    }
    const bool wildcard = text.starts_with("*.");
    const std::string_view name = wildcard ? std::string_view(text).substr(2) : std::string_view(text);
    const auto parsed = parse_host(name);
    if (!parsed || name.find('*') != std::string_view::npos) {
      return refuse("hosts",
                    "holds " + in_quotes(text) +
                        ", which is no host (a name, an address, IPv6 in brackets, *.example.com or *; no "
                        "scheme, port or path)");
    }
    if (wildcard && parsed->address)
      return refuse("hosts", "holds a wildcard over an address, " + in_quotes(text));
    if (wildcard) {
      rule_.host_suffixes.push_back("." + parsed->text);
    } else {
      rule_.hosts.push_back(parsed->text);
    }
    return {};
  }

  Result<void> schemes() {
    rule_.schemes = internal::kAllSchemes;
    if (auto fine = not_empty("schemes", input_.schemes); !fine || !input_.schemes) return fine;
    rule_.schemes = 0;
    for (const std::string& text : *input_.schemes) {
      const std::uint8_t bits = internal::scheme_bits(to_lower_ascii(text));
      if (bits == 0)
        return refuse("schemes", "holds " + in_quotes(text) + "; http, https, ws and wss are allowed");
      rule_.schemes |= bits;
    }
    return {};
  }

  Result<void> ports() {
    if (auto fine = not_empty("ports", input_.ports); !fine || !input_.ports) return fine;
    for (const std::int64_t port : *input_.ports) {
      if (port < 1 || port > 65535)
        return refuse("ports", "holds " + std::to_string(port) + "; 1 to 65535 are allowed");
      rule_.ports.push_back(static_cast<std::uint16_t>(port));
    }
    sort_unique(rule_.ports);
    return {};
  }

  Result<void> methods() {
    if (auto fine = not_empty("methods", input_.methods); !fine || !input_.methods) return fine;
    for (const std::string& text : *input_.methods) {
      if (!is_token(text) || text == "*") {
        return refuse("methods", "holds " + in_quotes(text) +
                                     ", which is no method; leave the list out to match every one");
      }
      rule_.methods.push_back(internal::to_upper_ascii(text));
    }
    sort_unique(rule_.methods);
    return {};
  }

  Result<void> paths() {
    if (auto fine = not_empty("paths", input_.paths); !fine || !input_.paths) return fine;
    for (const std::string& text : *input_.paths) {
      auto pattern = split_pattern(text);
      if (!pattern || !text.starts_with('/') || text.find_first_of("?#") != std::string::npos) {
        return refuse("paths", "holds " + in_quotes(text) +
                                   "; a path begins with '/', has '*' at its end only, and no query");
      }
      // A prefix that ends in a dot could still become anything; "/a/." and "/a/.x" are different paths.
      const bool keeps_dot =
          pattern->prefix && (pattern->text.ends_with("/.") || pattern->text.ends_with("/.."));
      if (keeps_dot)
        return refuse("paths", "holds " + in_quotes(text) + ", a prefix that ends in a dot segment");
      pattern->text = canonical_path(pattern->text);
      rule_.paths.push_back(std::move(*pattern));
    }
    return {};
  }

  Result<void> secret_paths() {
    if (auto fine = not_empty("secretPaths", input_.secret_paths); !fine || !input_.secret_paths) return fine;
    for (const std::string& text : *input_.secret_paths) {
      auto pattern = split_pattern(text);
      const bool platform = text.starts_with("platform:");
      bool valid = pattern && (platform || text == "/secrets/*");
      if (pattern && !valid) {
        const bool folder = pattern->prefix && pattern->text.ends_with('/');
        const std::string path = folder ? pattern->text.substr(0, pattern->text.size() - 1) : pattern->text;
        valid = (folder || !pattern->prefix) && check_secret_path(path).has_value();
      }
      if (!valid) {
        return refuse("secretPaths",
                      "holds " + in_quotes(text) +
                          "; \"/secrets/name\", \"/secrets/folder/*\" and \"platform:key\" are allowed");
      }
      rule_.secret_paths.push_back(std::move(*pattern));
    }
    return {};
  }

  static std::optional<Pattern> split_pattern(std::string_view text) {
    const std::size_t star = text.find('*');
    if (star == std::string_view::npos) return Pattern{std::string(text), false};
    if (star + 1 != text.size()) return std::nullopt;
    return Pattern{std::string(text.substr(0, star)), true};
  }

  template <class T>
  static void sort_unique(std::vector<T>& list) {
    internal::order(list, [](const T& left, const T& right) { return left < right; });
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  const PolicyRuleInput& input_;
  PolicyRule rule_;
};

std::optional<std::string> repeated_id(const std::vector<PolicyRuleInput>& rules) {
  std::vector<std::string_view> ids;
  ids.reserve(rules.size());
  for (const PolicyRuleInput& rule : rules) ids.push_back(rule.id);
  internal::order(ids, [](std::string_view left, std::string_view right) { return left < right; });
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  return twice == ids.end() ? std::nullopt : std::optional(std::string(*twice));
}

}  // namespace

Result<EgressPolicy> EgressPolicy::compile(const PolicyInput& input) {
  EgressPolicy policy;
  policy.default_allow_ = input.default_allow;
  policy.rules_.reserve(input.rules.size());
  if (const auto twice = repeated_id(input.rules)) return fail(InvalidPolicy{*twice, "id", "is there twice"});
  for (const PolicyRuleInput& rule : input.rules) {
    auto compiled = RuleCompiler(rule).run();
    if (!compiled) return propagate(compiled);
    policy.rules_.push_back(std::move(*compiled));
  }
  policy.index();
  return policy;
}

}  // namespace sandboxes
