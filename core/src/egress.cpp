#include "sandboxes/egress.hpp"

#include <algorithm>
#include <array>

#include "json_text.hpp"
#include "policy_schemes.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

/// What only Cloudflare's network may say about a request, or a loop guard that would be forged.
constexpr std::array<std::string_view, 15> kPlatformHeaders = {
    "cdn-loop",  "cf-cert-presented", "cf-connecting-ip", "cf-connecting-ipv6", "cf-connecting-o2o",
    "cf-ew-via", "cf-ipcity",         "cf-ipcountry",     "cf-pseudo-ipv4",     "cf-ray",
    "cf-region", "cf-visitor",        "cf-warp-tag-id",   "cf-worker",          "true-client-ip"};

/// Methods that fetch never sends.
constexpr std::array<std::string_view, 3> kForbiddenMethods = {"CONNECT", "TRACE", "TRACK"};

class Door {
 public:
  Door(const EgressPolicy& policy, const EgressRequest& input) : policy_(policy), input_(input) {}

  EgressDecision run() {
    const bool passes = target() && one_host() && placeholders() && allowed() && address() && one_secret();
    if (passes) choose();
    decision_.drop_headers = headers_to_drop(input_.request.headers, web_socket_);
    return std::move(decision_);
  }

 private:
  bool deny(int status, std::string_view code, std::string detail) {
    decision_.kind = EgressKind::deny;
    decision_.status = status;
    decision_.code = code;
    decision_.detail = std::move(detail);
    return false;
  }

  bool deny(const Error& error) {
    const ErrorReport report = describe(error);
    return deny(report.status, report.code, report.message);
  }

  bool target() {
    auto url = parse_url(input_.request.url);
    if (!url) return deny(url.error());
    url_ = std::move(*url);
    web_socket_ = input_.web_socket || url_.web_socket() || asks_for_web_socket(input_.request.headers);
    method_ = internal::to_upper_ascii(input_.request.method);
    const bool forbidden =
        std::find(kForbiddenMethods.begin(), kForbiddenMethods.end(), method_) != kForbiddenMethods.end();
    if (!is_token(method_) || forbidden) {
      return deny(405, "egress_method_not_allowed",
                  "The method " + in_quotes(input_.request.method) + " is not sent on.");
    }
    return true;
  }

  bool mismatch(std::string_view what, std::string_view got) {
    return deny(421, "egress_host_mismatch",
                "The " + std::string(what) + " names " + in_quotes(got) + " and the request goes to " +
                    in_quotes(origin_text(url_)) + ". All of them must name one host.");
  }

  bool one_host() {
    const HeaderList& headers = input_.request.headers;
    if (count_headers(headers, "host") > 1)
      return mismatch("Host header, which is there twice,", "several hosts");
    if (const auto value = find_header(headers, "host"); value && !same_host_and_port(trim(*value))) {
      return mismatch("Host header", *value);
    }
    if (input_.sni && !input_.sni->empty()) {
      const auto host = parse_host(*input_.sni);
      if (!host || host->text != url_.host.text) return mismatch("TLS server name", *input_.sni);
    }
    return true;
  }

  /// A Host header is an authority without userinfo: it is read as the URL it would make.
  [[nodiscard]] bool same_host_and_port(std::string_view authority) const {
    if (authority.find_first_of("@/\\?# ") != std::string_view::npos) return false;
    const auto url = parse_url(url_.scheme + "://" + std::string(authority));
    return url && url->host.text == url_.host.text && url->port == url_.port;
  }

  bool placeholders() {
    auto scan = scan_placeholders(input_.request);
    if (!scan) return deny(scan.error());
    scan_ = std::move(*scan);
    decision_.references = scan_.references;
    return true;
  }

  bool allowed() {
    const std::string path = canonical_path(url_.path.of(input_.request.url));
    std::vector<std::string> keys;
    for (const Reference& reference : scan_.references) {
      keys.push_back(reference.kind == ReferenceKind::secret ? reference.path : reference_key(reference));
    }
    PolicyRequest request;
    request.host = url_.host.text;
    request.host_is_address = url_.host.address.has_value();
    request.port = url_.port;
    request.secure = url_.secure();
    request.web_socket = web_socket_;
    request.method = method_;
    request.path = path;
    request.secret_paths = {keys.begin(), keys.end()};
    rule_ = policy_.match(request);
    if (rule_ != nullptr) decision_.rule = rule_->id;
    if (rule_ != nullptr ? rule_->allow : policy_.default_allow()) return true;
    const std::string why = rule_ != nullptr
                                ? "by rule " + in_quotes(rule_->id) + " of"
                                : std::string("because no rule allows it and deny is the default of");
    return deny(403, "egress_denied",
                method_ + " " + origin_text(url_) + " is denied " + why + " this project's egress policy.");
  }

  bool address() {
    std::optional<AddressClass> found;
    if (url_.host.address) {
      found = classify(*url_.host.address);
    } else {
      found = classify_name(url_.host.text);
    }
    if (denied(found, url_.host.text)) return false;
    if (!input_.address) return true;
    const auto resolved = parse_address(*input_.address);
    if (!resolved) return deny(resolved.error());
    return !denied(classify(*resolved), to_text(*resolved));
  }

  bool denied(std::optional<AddressClass> found, const std::string& host) {
    if (!found || *found == AddressClass::public_address) return false;
    if (rule_ != nullptr && rule_->names_host(host)) return false;
    const std::string name(class_name(*found));
    deny(403, "egress_address_denied",
         in_quotes(host) + " is a " + name + " address. Only a rule that names it literally can allow it.");
    return true;
  }

  bool one_secret() {
    if (auto one = require_one_secret(scan_); !one) return deny(one.error());
    return true;
  }

  void choose() {
    decision_.kind = EgressKind::forward;
    if (!scan_.references.empty()) {
      decision_.kind = EgressKind::secret;
      return;
    }
    if (input_.gateway == nullptr) return;
    auto routed = route_openai(input_.request, url_, web_socket_, *input_.gateway);
    if (auto* call = std::get_if<GatewayCall>(&routed)) {
      decision_.kind = EgressKind::ai_gateway;
      decision_.call = std::move(*call);
    }
  }

  const EgressPolicy& policy_;
  const EgressRequest& input_;
  EgressDecision decision_;
  Url url_;
  bool web_socket_ = false;
  std::string method_;
  PlaceholderScan scan_;
  const PolicyRule* rule_ = nullptr;
};

}  // namespace

std::string_view kind_name(EgressKind kind) {
  switch (kind) {
    case EgressKind::deny:
      return "deny";
    case EgressKind::forward:
      return "forward";
    case EgressKind::secret:
      return "secret";
    case EgressKind::ai_gateway:
      return "aiGateway";
  }
  return "deny";
}

EgressDecision decide_egress(const EgressPolicy& policy, const EgressRequest& request) {
  return Door(policy, request).run();
}

std::string deny_body(std::string_view code, const std::optional<std::string>& rule,
                      std::string_view detail) {
  const auto member = [](std::string_view name, std::string_view value) {
    return "\"" + std::string(name) + "\": \"" + internal::escape_json(value) + "\"";
  };
  std::string body = "{ " + member("error", code) + ", " + member("code", code);
  body += rule ? ", " + member("rule", *rule) : ", \"rule\": null";
  return body + ", " + member("detail", detail) + " }\n";
}

std::vector<std::string> headers_to_drop(const HeaderList& headers, bool web_socket) {
  std::vector<std::string> named;
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "connection")) continue;
    for (const auto part : split_list(value)) named.push_back(to_lower_ascii(part));
  }
  std::vector<std::string> drop;
  for (const auto& header : headers) {
    std::string name = to_lower_ascii(header.first);
    const auto is_in = [&name](const auto& list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    const bool goes =
        is_hop_by_hop(name) || is_in(named) || name.starts_with("x-iterate-") || is_in(kPlatformHeaders);
    // The runtime makes an upgrade from this one header.
    if (!goes || (web_socket && name == "upgrade") || is_in(drop)) continue;
    // `Connection: authorization` would strip a header that the request needs and every hop checks.
    if (name == "host" || name == "authorization" || name == "content-length") continue;
    drop.push_back(std::move(name));
  }
  return drop;
}

}  // namespace sandboxes
