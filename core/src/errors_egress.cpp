#include "sandboxes/errors/egress.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

std::string InvalidUrl::message() const {
  return "The URL is refused: " + reason + ". Give an absolute http, https, ws or wss URL.";
}
Details InvalidUrl::details() const {
  return {{"reason", reason}};
}

std::string InvalidAddress::message() const {
  return "There is no IP address in " + in_quotes(got) +
         ". Give IPv4 (dotted, short, octal or hexadecimal) or IPv6.";
}
Details InvalidAddress::details() const {
  return {{"address", got}};
}

std::string InvalidPolicy::message() const {
  return "The egress policy is refused: " +
         (rule.empty() ? std::string() : "rule " + in_quotes(rule) + ", ") +
         (field.empty() ? "" : in_quotes(field) + " ") + reason + ".";
}
Details InvalidPolicy::details() const {
  return {{"rule", rule}, {"field", field}, {"reason", reason}};
}

std::string SecretReferenceUnparseable::message() const {
  return "A placeholder in the " + part + " is malformed at position " + std::to_string(position) + ": " +
         reason + ". Write getSecret(\"/secrets/name\") or getSecret(\"/secrets/name\", { field: \"a.b\" }).";
}
Details SecretReferenceUnparseable::details() const {
  return {{"part", part}, {"reason", reason}, {"position", position}};
}

std::string SecretReferenceInvalidPath::message() const {
  return "A placeholder in the " + part + " at position " + std::to_string(position) +
         " names no secret: " + reason;
}
Details SecretReferenceInvalidPath::details() const {
  return {{"part", part}, {"path", path}, {"reason", reason}, {"position", position}};
}

std::string SecretReferenceOutsideUrlPath::message() const {
  return "There is a placeholder in the URL's " + part +
         ". Only its path may hold one: other parts end in logs. Use a header or the path.";
}
Details SecretReferenceOutsideUrlPath::details() const {
  return {{"part", part}};
}

std::string SecretReferenceForeign::message() const {
  return "The request names " + in_quotes(first) + " and " + in_quotes(other) +
         ". All placeholders of one request name one secret; keep what belongs together in its fields.";
}
Details SecretReferenceForeign::details() const {
  return {{"first", first}, {"other", other}};
}

std::string SecretTemplateInvalid::message() const {
  return "The body template is refused: " + reason +
         ". Send JSON of at most 1 MiB with x-iterate-secret-template: json, or leave the header out.";
}
Details SecretTemplateInvalid::details() const {
  return {{"reason", reason}};
}

std::string SecretNotFound::message() const {
  return "There is no secret " + in_quotes(reference) + ". Create it, or correct the placeholder.";
}
Details SecretNotFound::details() const {
  return {{"path", path}, {"reference", reference}};
}

std::string SecretMaterialNotHeaderSafe::message() const {
  return "The value of " + in_quotes(reference) +
         " holds a line break or NUL, which would end a header. Store it without (a final line break is a "
         "common slip).";
}
Details SecretMaterialNotHeaderSafe::details() const {
  return {{"reference", reference}};
}

std::string SecretMaterialNotPathSafe::message() const {
  return "The value of " + in_quotes(reference) +
         " would become a dot segment of the URL path. Send it in a header.";
}
Details SecretMaterialNotPathSafe::details() const {
  return {{"reference", reference}};
}

std::string SecretMaterialNotAString::message() const {
  return (field.empty() ? "The secret" : "The field " + in_quotes(field)) + " is " + got +
         ". A placeholder stands for a string; name a field that holds one.";
}
Details SecretMaterialNotAString::details() const {
  return {{"field", field}, {"got", got}};
}

std::string SecretReferenceFieldNotFound::message() const {
  return "The secret has no field " + in_quotes(field) + ". Fields are its own members, joined by dots.";
}
Details SecretReferenceFieldNotFound::details() const {
  return {{"field", field}};
}

std::string SecretNotAllowedForOrigin::message() const {
  return "The secret may not go to " + in_quotes(origin) + ". " +
         (allowed.empty() ? "It has no origins." : "Its origins: " + allowed + ".") +
         " Add the origin to the secret, or send no placeholder.";
}
Details SecretNotAllowedForOrigin::details() const {
  return {{"origin", origin}, {"allowed", allowed}};
}

std::string NotARedirect::message() const {
  return "The response with status " + std::to_string(status) + " cannot be followed: " + reason + ".";
}
Details NotARedirect::details() const {
  return {{"status", status}, {"reason", reason}};
}

std::string RedirectRefused::message() const {
  return "The redirect to " + in_quotes(origin) + " is not followed: " + reason + ".";
}
Details RedirectRefused::details() const {
  return {{"origin", origin}, {"reason", reason}};
}

std::string InvalidEnv::message() const {
  return "The variable " + in_quotes(key) + " is refused: " + reason + ". Nothing was stored.";
}
Details InvalidEnv::details() const {
  return {{"key", key}, {"reason", reason}};
}

std::string EnvTooLarge::message() const {
  return "The " + what + " has " + std::to_string(bytes) + " bytes as JSON; the limit is " +
         std::to_string(limit) + ". Keep large values in a file under /workspace. Nothing was stored.";
}
Details EnvTooLarge::details() const {
  return {{"what", what}, {"bytes", bytes}, {"limit", limit}};
}

std::string RawSecretRefused::message() const {
  return "The value of " + in_quotes(key) + " looks like " + kind +
         ". Store it as a secret and set the variable to getSecret(\"/secrets/name\"), or pass "
         "allowRawSecrets: true.";
}
Details RawSecretRefused::details() const {
  return {{"key", key}, {"kind", kind}};
}

std::string InvalidGitIdentity::message() const {
  return "The git " + field + " is refused: " + reason + ".";
}
Details InvalidGitIdentity::details() const {
  return {{"field", field}, {"reason", reason}};
}

std::string InvalidCommand::message() const {
  return "The command is refused: " + reason + ". Give a shell command line.";
}
Details InvalidCommand::details() const {
  return {{"reason", reason}};
}

std::string InvalidTimeout::message() const {
  return "The timeout " + got +
         " is refused. Give milliseconds above 0 and at most 2147483647, or leave it out for no limit.";
}
Details InvalidTimeout::details() const {
  return {{"got", got}};
}

std::string InvalidSleepAfter::message() const {
  return "sleepAfter is " + got +
         "; it must be a positive number of seconds, or digits with s, m or h such as \"10m\", and at most "
         "100 "
         "years.";
}
Details InvalidSleepAfter::details() const {
  return {{"got", got}};
}

std::string InvalidSnapshot::message() const {
  return "The snapshot handle is refused: " + in_quotes(field) + " " + reason + ".";
}
Details InvalidSnapshot::details() const {
  return {{"field", field}, {"reason", reason}};
}

std::string InvalidEndpoint::message() const {
  return "BACKUP_BUCKET_ENDPOINT " + in_quotes(got) + " is refused: " + reason +
         ". Give an origin like \"https://account.eu.r2.cloudflarestorage.com\", or leave it out.";
}
Details InvalidEndpoint::details() const {
  return {{"got", got}, {"reason", reason}};
}

std::string BackupNotFound::message() const {
  return "There is no snapshot " + in_quotes(id) + " of this sandbox.";
}
Details BackupNotFound::details() const {
  return {{"id", id}};
}

}  // namespace sandboxes
