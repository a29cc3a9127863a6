#include "sandboxes/egress_policy.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "random.hpp"

using namespace sandboxes;
using sandboxes::tests::Random;

namespace {

constexpr std::array<std::string_view, 9> kHosts = {"example.com",   "a.example.com", "b.a.example.com",
                                                    "aexample.com",  "com",           "127.0.0.1",
                                                    "x.y.z.example", "z.example",     "::1"};
constexpr std::array<std::string_view, 10> kHostPatterns = {
    "example.com", "*.example.com", "*.a.example.com", "*.com",         "*",
    "127.0.0.1",   "*.z.example",   "[::1]",           "*.y.z.example", "a.example.com"};
constexpr std::array<std::string_view, 7> kPaths = {"/", "/v1", "/v1/", "/v1/a", "/v1/a/b", "/v2", "/v"};
constexpr std::array<std::string_view, 8> kPathPatterns = {"/*",  "/v1", "/v1/*",   "/v1/a*",
                                                           "/v*", "/",   "/v1/a/b", "/v2/*"};
constexpr std::array<std::string_view, 3> kMethods = {"GET", "POST", "PURGE"};
constexpr std::array<std::string_view, 4> kSecrets = {"/secrets/a", "/secrets/a/b", "/secrets/b",
                                                      "platform:x"};
constexpr std::array<std::string_view, 6> kSecretPatterns = {"/secrets/a", "/secrets/a/*", "/secrets/*",
                                                             "platform:x", "platform:*",   "/secrets/b"};
constexpr std::array<std::string_view, 4> kSchemes = {"http", "https", "ws", "wss"};

template <class List>
std::optional<std::vector<std::string>> some_of(Random& random, const List& list) {
  if (random.chance(2)) return std::nullopt;
  std::vector<std::string> chosen;
  const std::size_t count = 1 + random.below(3);
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(random.pick(list));
  return chosen;
}

PolicyInput random_policy(Random& random, std::size_t rules) {
  PolicyInput input;
  for (std::size_t i = 0; i < rules; ++i) {
    PolicyRuleInput rule;
    rule.id = "r" + std::to_string(i);
    rule.hosts = some_of(random, kHostPatterns);
    rule.paths = some_of(random, kPathPatterns);
    rule.methods = some_of(random, kMethods);
    rule.schemes = some_of(random, kSchemes);
    rule.secret_paths = some_of(random, kSecretPatterns);
    if (random.chance(3))
      rule.ports = std::vector<std::int64_t>{443, static_cast<std::int64_t>(random.below(3)) + 80};
    input.rules.push_back(std::move(rule));
  }
  return input;
}

// ---- The reference: every rule in turn, by the words of the documentation.

bool glob(std::string_view pattern, std::string_view text) {
  if (pattern.ends_with('*'))
    return text.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1);
  return pattern == text;
}

bool host_fits(std::string_view pattern, const PolicyRequest& request) {
  if (pattern == "*") return true;
  if (pattern == "[::1]") return request.host == "::1";
  if (!pattern.starts_with("*.")) return pattern == request.host;
  return !request.host_is_address && request.host.size() > pattern.size() - 1 &&
         request.host.ends_with(pattern.substr(1));
}

bool scheme_fits(std::string_view scheme, const PolicyRequest& request) {
  const bool secure = scheme == "https" || scheme == "wss";
  const bool needs_socket = scheme == "ws" || scheme == "wss";
  return secure == request.secure && (!needs_socket || request.web_socket);
}

template <class List, class Test>
bool any(const std::optional<List>& list, const Test& test) {
  if (!list) return true;
  for (const auto& item : *list) {
    if (test(item)) return true;
  }
  return false;
}

bool fits(const PolicyRuleInput& rule, const PolicyRequest& request) {
  return any(rule.hosts, [&](const auto& p) { return host_fits(p, request); }) &&
         any(rule.paths, [&](const auto& p) { return glob(p, request.path); }) &&
         any(rule.methods, [&](const auto& m) { return m == request.method; }) &&
         any(rule.schemes, [&](const auto& s) { return scheme_fits(s, request); }) &&
         any(rule.ports, [&](std::int64_t port) { return port == request.port; }) &&
         any(rule.secret_paths, [&](const auto& pattern) {
           for (const auto path : request.secret_paths) {
             if (glob(pattern, path)) return true;
           }
           return false;
         });
}

std::string reference(const PolicyInput& policy, const PolicyRequest& request) {
  for (const PolicyRuleInput& rule : policy.rules) {
    if (fits(rule, request)) return rule.id;
  }
  return "";
}

std::string matched(const EgressPolicy& policy, const PolicyRequest& request) {
  const PolicyRule* rule = policy.match(request);
  return rule == nullptr ? "" : rule->id;
}

}  // namespace

TEST_CASE("a compiled policy decides as the rules read one after another") {
  Random random(3);
  const int count = sandboxes::tests::rounds(20'000, 1'000'000);
  PolicyInput input;
  std::optional<EgressPolicy> policy;
  for (int i = 0; i < count; ++i) {
    if (i % 50 == 0) {
      input = random_policy(random, random.below(40));
      auto compiled = EgressPolicy::compile(input);
      REQUIRE(compiled);
      policy = std::move(*compiled);
    }
    const std::string host = random.pick(kHosts);
    const std::string path = random.pick(kPaths);
    const std::string method = random.pick(kMethods);
    std::vector<std::string> secrets;
    for (std::size_t n = random.below(3); n > 0; --n) secrets.push_back(random.pick(kSecrets));
    PolicyRequest request;
    request.host = host;
    request.host_is_address = host == "127.0.0.1" || host == "::1";
    request.port = static_cast<std::uint16_t>(random.chance(2) ? 443 : 80 + random.below(3));
    request.secure = random.chance(2);
    request.web_socket = random.chance(2);
    request.method = method;
    request.path = path;
    request.secret_paths = {secrets.begin(), secrets.end()};
    INFO(method << " " << host << ":" << request.port << path << " " << request.secure << request.web_socket);
    REQUIRE(matched(*policy, request) == reference(input, request));
  }
}

TEST_CASE("a rule with more combinations than are filed still matches") {
  PolicyInput input;
  PolicyRuleInput rule;
  rule.id = "wide";
  rule.hosts.emplace();
  rule.paths.emplace();
  rule.methods = {"GET", "POST"};
  for (int i = 0; i < 300; ++i) {
    rule.hosts->push_back("h" + std::to_string(i) + ".example");
    rule.paths->push_back("/p" + std::to_string(i) + "/*");
  }
  input.rules.push_back(rule);
  const auto policy = EgressPolicy::compile(input);
  REQUIRE(policy);
  PolicyRequest request;
  request.host = "h299.example";
  request.path = "/p123/x";
  request.method = "POST";
  request.secure = true;
  CHECK(matched(*policy, request) == "wide");
  request.method = "PUT";
  CHECK(matched(*policy, request).empty());
  request.method = "GET";
  request.path = "/p300/x";
  CHECK(matched(*policy, request).empty());
}

TEST_CASE("the first of a hundred thousand rules that matches wins") {
  PolicyInput input;
  for (int i = 0; i < 100'000; ++i) {
    PolicyRuleInput rule;
    rule.id = "r" + std::to_string(i);
    rule.hosts = std::vector<std::string>{"h" + std::to_string(i % 50'000) + ".example"};
    input.rules.push_back(std::move(rule));
  }
  const auto policy = EgressPolicy::compile(input);
  REQUIRE(policy);
  PolicyRequest request;
  request.host = "h49999.example";
  request.path = "/";
  request.method = "GET";
  CHECK(matched(*policy, request) == "r49999");
  request.host = "h50000.example";
  CHECK(matched(*policy, request).empty());
}
