#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes {

/// A text that ends in `*` and stands for everything that begins with what is before it, or an exact text.
struct Pattern {
  std::string text;  ///< without the `*`
  bool prefix = false;
  [[nodiscard]] bool matches(std::string_view candidate) const {
    return prefix ? candidate.starts_with(text) : candidate == text;
  }
  bool operator==(const Pattern&) const = default;
};

/// One rule as written. A list that is absent matches everything; one that is there and empty is refused.
struct PolicyRuleInput {
  std::string id;
  bool allow = false;
  std::optional<std::vector<std::string>> hosts;         ///< exact names and addresses, `*.example.com`, `*`
  std::optional<std::vector<std::string>> schemes;       ///< http, https, ws, wss
  std::optional<std::vector<std::int64_t>> ports;        ///< 1 to 65535
  std::optional<std::vector<std::string>> methods;       ///< without regard to case
  std::optional<std::vector<std::string>> paths;         ///< exact, or with a final `*`
  std::optional<std::vector<std::string>> secret_paths;  ///< `/secrets/x`, `/secrets/x/*`, `platform:a.b`
};

struct PolicyInput {
  bool default_allow = false;
  std::vector<PolicyRuleInput> rules;
};

/// What a rule looks at, in canonical form.
struct PolicyRequest {
  std::string_view host;
  bool host_is_address = false;
  std::uint16_t port = 0;
  bool secure = false;
  bool web_socket = false;
  std::string_view method;                     ///< upper case
  std::string_view path;                       ///< as canonical_path makes it
  std::vector<std::string_view> secret_paths;  ///< of secrets the path, of platform keys `platform:<path>`
};

/// A rule in canonical form.
struct PolicyRule {
  std::string id;
  bool allow = false;
  bool any_host = true;
  std::vector<std::string> hosts;          ///< exact ones, sorted
  std::vector<std::string> host_suffixes;  ///< `.example.com`, sorted
  std::uint8_t schemes = 0;                ///< bits, see egress_policy.cpp
  std::vector<std::uint16_t> ports;        ///< sorted; empty means any
  std::vector<std::string> methods;        ///< upper case, sorted; empty means any
  std::vector<Pattern> paths;
  std::vector<Pattern> secret_paths;

  [[nodiscard]] bool matches(const PolicyRequest& request) const;
  /// Whether the rule names exactly this host, as it has to for a denied address.
  [[nodiscard]] bool names_host(std::string_view host) const;
};

/// A policy that is compiled once and asked often. Each rule is filed under the parts it tests, and a request
/// looks its own parts up: one hash probe for each combination of parts that any rule tests, however many
/// rules there are.
class EgressPolicy {
 public:
  [[nodiscard]] static Result<EgressPolicy> compile(const PolicyInput& input);

  /// The first rule that matches, or null: then the default holds.
  [[nodiscard]] const PolicyRule* match(const PolicyRequest& request) const;
  [[nodiscard]] bool default_allow() const { return default_allow_; }
  [[nodiscard]] const std::vector<PolicyRule>& rules() const { return rules_; }

 private:
  enum class Test : std::uint8_t { any, exact, prefix };

  /// Which parts of a request go into a key. `host` as prefix means its last `host_labels` labels.
  struct Shape {
    Test host = Test::any;
    bool port = false;
    bool method = false;
    Test path = Test::any;
    Test secret = Test::any;
    std::uint32_t host_labels = 0;
    std::uint32_t path_bytes = 0;
    std::uint32_t secret_bytes = 0;
    std::uint32_t first_rule = 0;
    bool operator==(const Shape& other) const;
  };

  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t rule = 0;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;  ///< equal to `begin` when the slot is free
  };
  struct Parts;
  class Filing;

  void index();
  void build_slots();
  [[nodiscard]] std::uint32_t first_match(const PolicyRequest& request, std::string_view secret_path,
                                          std::uint32_t best) const;
  [[nodiscard]] std::uint32_t probe(std::uint64_t key, const PolicyRequest& request,
                                    std::uint32_t best) const;

  bool default_allow_ = false;
  std::vector<PolicyRule> rules_;
  std::vector<Shape> shapes_;  ///< by first_rule
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  ///< open addressing, a power of two
};

}  // namespace sandboxes
