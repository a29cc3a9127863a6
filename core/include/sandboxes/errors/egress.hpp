#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

struct InvalidUrl {
  static constexpr ErrorInfo info{"invalid_url", 400, false, "A URL is not one that a request may go to."};
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidUrl&) const = default;
};

struct InvalidAddress {
  static constexpr ErrorInfo info{"invalid_address", 400, false, "A text is no IP address in any spelling."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidAddress&) const = default;
};

struct InvalidPolicy {
  static constexpr ErrorInfo info{"invalid_policy", 400, false, "An egress policy cannot be compiled."};
  std::string rule;
  std::string field;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidPolicy&) const = default;
};

/// Nothing of the request is sent: what was meant cannot be known.
struct SecretReferenceUnparseable {
  static constexpr ErrorInfo info{"secret_reference_unparseable", 400, false,
                                  "Something begins like a placeholder and is not one."};
  std::string part;
  std::string reason;
  std::int64_t position;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretReferenceUnparseable&) const = default;
};

struct SecretReferenceInvalidPath {
  static constexpr ErrorInfo info{"secret_reference_invalid_path", 400, false,
                                  "A placeholder names no possible secret."};
  std::string part;
  std::string path;
  std::string reason;
  std::int64_t position;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretReferenceInvalidPath&) const = default;
};

struct SecretReferenceOutsideUrlPath {
  static constexpr ErrorInfo info{"secret_reference_outside_url_path", 400, false,
                                  "A placeholder stands in a part of the URL where none may."};
  std::string part;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretReferenceOutsideUrlPath&) const = default;
};

struct SecretReferenceForeign {
  static constexpr ErrorInfo info{"secret_reference_foreign", 400, false,
                                  "The placeholders of one request name several secrets."};
  std::string first;
  std::string other;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretReferenceForeign&) const = default;
};

struct SecretTemplateInvalid {
  static constexpr ErrorInfo info{"secret_template_invalid", 400, false,
                                  "A body that was marked as a template cannot be one."};
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretTemplateInvalid&) const = default;
};

struct SecretNotFound {
  static constexpr ErrorInfo info{"secret_not_found", 404, false,
                                  "A placeholder names a secret that does not exist."};
  std::string path;
  std::string reference;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretNotFound&) const = default;
};

struct SecretMaterialNotHeaderSafe {
  static constexpr ErrorInfo info{"secret_material_not_header_safe", 400, false,
                                  "A secret's value holds CR, LF or NUL."};
  std::string reference;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretMaterialNotHeaderSafe&) const = default;
};

struct SecretMaterialNotPathSafe {
  static constexpr ErrorInfo info{"secret_material_not_path_safe", 400, false,
                                  "A secret's value would change the URL path instead of filling it."};
  std::string reference;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretMaterialNotPathSafe&) const = default;
};

struct SecretMaterialNotAString {
  static constexpr ErrorInfo info{"secret_material_not_a_string", 400, false,
                                  "What a placeholder selects is no string."};
  std::string field;
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretMaterialNotAString&) const = default;
};

struct SecretReferenceFieldNotFound {
  static constexpr ErrorInfo info{"secret_reference_field_not_found", 404, false,
                                  "A secret has no field of this name."};
  std::string field;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretReferenceFieldNotFound&) const = default;
};

struct SecretNotAllowedForOrigin {
  static constexpr ErrorInfo info{"secret_not_allowed_for_origin", 403, false,
                                  "A secret is not pinned to where the request goes."};
  std::string origin;
  std::string allowed;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretNotAllowedForOrigin&) const = default;
};

struct NotARedirect {
  static constexpr ErrorInfo info{"not_a_redirect", 400, false,
                                  "A response is no redirect that can be followed."};
  std::int64_t status;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const NotARedirect&) const = default;
};

struct RedirectRefused {
  static constexpr ErrorInfo info{"redirect_refused", 403, false,
                                  "A redirect leads where its request may not go."};
  std::string origin;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const RedirectRefused&) const = default;
};

struct InvalidEnv {
  static constexpr ErrorInfo info{"invalid_env", 400, false, "A variable of an environment is impossible."};
  std::string key;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidEnv&) const = default;
};

struct EnvTooLarge {
  static constexpr ErrorInfo info{"env_too_large", 413, false,
                                  "An environment would not fit into one event."};
  std::string what;
  std::int64_t bytes;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const EnvTooLarge&) const = default;
};

/// It would lie on the durable stream and in the container. The value itself is not repeated here.
struct RawSecretRefused {
  static constexpr ErrorInfo info{"raw_secret_refused", 400, false,
                                  "A variable's value looks like a raw secret."};
  std::string key;
  std::string kind;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const RawSecretRefused&) const = default;
};

struct InvalidGitIdentity {
  static constexpr ErrorInfo info{"invalid_git_identity", 400, false,
                                  "A git name, email or token has a character that git cannot keep."};
  std::string field;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidGitIdentity&) const = default;
};

struct InvalidCommand {
  static constexpr ErrorInfo info{"invalid_command", 400, false, "A command is empty or holds NUL."};
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidCommand&) const = default;
};

struct InvalidTimeout {
  static constexpr ErrorInfo info{"invalid_timeout", 400, false,
                                  "A timeout is no number of milliseconds that a timer can hold."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidTimeout&) const = default;
};

struct InvalidSleepAfter {
  static constexpr ErrorInfo info{"invalid_sleep_after", 400, false, "A sleepAfter is no positive duration."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidSleepAfter&) const = default;
};

struct InvalidSnapshot {
  static constexpr ErrorInfo info{"invalid_snapshot", 400, false,
                                  "A snapshot handle is not one that was stored."};
  std::string field;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidSnapshot&) const = default;
};

struct InvalidEndpoint {
  static constexpr ErrorInfo info{"invalid_endpoint", 400, false,
                                  "BACKUP_BUCKET_ENDPOINT is no bare https origin."};
  std::string got;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidEndpoint&) const = default;
};

struct BackupNotFound {
  static constexpr ErrorInfo info{"backup_not_found", 404, false,
                                  "There is no such snapshot of this sandbox."};
  std::string id;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const BackupNotFound&) const = default;
};

using EgressErrors =
    std::tuple<InvalidUrl, InvalidAddress, InvalidPolicy, SecretReferenceUnparseable,
               SecretReferenceInvalidPath, SecretReferenceOutsideUrlPath, SecretReferenceForeign,
               SecretTemplateInvalid, SecretNotFound, SecretMaterialNotHeaderSafe, SecretMaterialNotPathSafe,
               SecretMaterialNotAString, SecretReferenceFieldNotFound, SecretNotAllowedForOrigin,
               NotARedirect, RedirectRefused, InvalidEnv, EnvTooLarge, RawSecretRefused, InvalidGitIdentity,
               InvalidCommand, InvalidTimeout, InvalidSleepAfter, InvalidSnapshot, InvalidEndpoint,
               BackupNotFound>;

}  // namespace sandboxes
