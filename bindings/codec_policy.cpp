#include <algorithm>
#include <array>

#include "policy_json.hpp"

namespace sandboxes::bindings {

namespace {

constexpr std::array<std::string_view, 8> kRuleKeys = {"id",    "action",  "hosts", "schemes",
                                                       "ports", "methods", "paths", "secretPaths"};
constexpr std::array<std::string_view, 2> kPolicyKeys = {"default", "rules"};

template <class Keys>
Result<void> check_keys(Input object, const Keys& known, std::string_view rule) {
  simdjson::dom::object members;
  if (object.get_object().get(members) != simdjson::SUCCESS) return {};
  for (const auto field : members) {
    if (std::find(known.begin(), known.end(), field.key) == known.end()) {
      std::string allowed;
      for (const auto key : known) allowed += (allowed.empty() ? "" : ", ") + std::string(key);
      return fail(
          InvalidPolicy{std::string(rule), std::string(field.key), "is unknown; " + allowed + " are known"});
    }
  }
  return {};
}

Result<bool> read_action(Input object, std::string_view key, std::string_view rule) {
  const auto text = read_string(object, key);
  if (!text) return propagate(text);
  if (*text != "allow" && *text != "deny") {
    return fail(InvalidPolicy{std::string(rule), std::string(key), "must be \"allow\" or \"deny\""});
  }
  return *text == "allow";
}

/// Reads lists into a rule and remembers the first that is wrong.
class RuleReader {
 public:
  explicit RuleReader(Input object) : object_(object) {}

  void strings(std::string_view key, std::optional<std::vector<std::string>>& out) {
    const auto list = read_optional_strings(object_, key);
    if (!list) return keep(list.error());
    if (*list) out.emplace((*list)->begin(), (*list)->end());
  }

  void integers(std::string_view key, std::optional<std::vector<std::int64_t>>& out) {
    const auto list = read_optional_array(object_, key);
    if (!list) return keep(list.error());
    if (!*list) return;
    out.emplace();
    for (const Input item : **list) {
      std::int64_t number = 0;
      if (item.get_int64().get(number) != simdjson::SUCCESS)
        return keep(wrong_type(key, item, "whole numbers"));
      out->push_back(number);
    }
  }

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void keep(const Error& error) {
    if (!error_) error_ = error;
  }

  Input object_;
  std::optional<Error> error_;
};

Result<PolicyRuleInput> read_rule(Input object) {
  if (!object.is_object()) return tl::unexpected(wrong_type("rules", object, "an array of objects"));
  const auto id = read_string(object, "id");
  if (!id) return propagate(id);
  if (auto known = check_keys(object, kRuleKeys, *id); !known) return propagate(known);
  const auto allow = read_action(object, "action", *id);
  if (!allow) return propagate(allow);
  PolicyRuleInput rule;
  rule.id = std::string(*id);
  rule.allow = *allow;
  RuleReader reader(object);
  reader.strings("hosts", rule.hosts);
  reader.strings("schemes", rule.schemes);
  reader.integers("ports", rule.ports);
  reader.strings("methods", rule.methods);
  reader.strings("paths", rule.paths);
  reader.strings("secretPaths", rule.secret_paths);
  if (reader.error()) return tl::unexpected(*reader.error());
  return rule;
}

}  // namespace

Result<EgressPolicy> read_policy(Input object, std::string_view key) {
  const auto policy = read_object(object, key);
  if (!policy) return propagate(policy);
  if (auto known = check_keys(*policy, kPolicyKeys, ""); !known) return propagate(known);
  const auto allow = read_action(*policy, "default", "");
  if (!allow) return propagate(allow);
  const auto rules = read_optional_array(*policy, "rules");
  if (!rules) return propagate(rules);
  PolicyInput input;
  input.default_allow = *allow;
  if (*rules) {
    for (const Input one : **rules) {
      auto rule = read_rule(one);
      if (!rule) return propagate(rule);
      input.rules.push_back(std::move(*rule));
    }
  }
  return EgressPolicy::compile(input);
}

}  // namespace sandboxes::bindings
