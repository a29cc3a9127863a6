#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/egress_policy.hpp"
#include "sandboxes/http.hpp"
#include "sandboxes/openai.hpp"
#include "sandboxes/placeholders.hpp"

namespace sandboxes {

/// One request at the door.
struct EgressRequest {
  RequestView request;
  bool web_socket = false;                  ///< an upgrade, whatever the scheme in the URL says
  std::optional<std::string_view> sni;      ///< the name that the TLS client gave
  std::optional<std::string_view> address;  ///< the address that will be connected to, when it is known
  const Gateway* gateway = nullptr;         ///< null: OpenAI calls take normal egress
};

enum class EgressKind : std::uint8_t { deny, forward, secret, ai_gateway };

[[nodiscard]] std::string_view kind_name(EgressKind kind);

/// What is to be done with a request.
struct EgressDecision {
  EgressKind kind = EgressKind::deny;
  std::optional<std::string> rule;  ///< id of the rule that matched; nothing when the default held
  std::vector<Reference> references;
  std::vector<std::string> drop_headers;  ///< lower case, each once
  // of a refusal
  int status = 0;
  std::string code;
  std::string detail;
  // of a gateway call
  std::optional<GatewayCall> call;
};

/// Decides, in this order: the target is well-formed; target, Host header and SNI name one host; placeholders
/// are well-formed; policy; denied addresses; one secret; then where it goes. Always answers.
[[nodiscard]] EgressDecision decide_egress(const EgressPolicy& policy, const EgressRequest& request);

/// The JSON that a refused client reads.
[[nodiscard]] std::string deny_body(std::string_view code, const std::optional<std::string>& rule,
                                    std::string_view detail);

/// Headers of the request that must not go on: those of one connection, ours, and those only Cloudflare may
/// set.
[[nodiscard]] std::vector<std::string> headers_to_drop(const HeaderList& headers, bool web_socket);

}  // namespace sandboxes
