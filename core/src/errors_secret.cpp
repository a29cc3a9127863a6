#include "sandboxes/errors/secret.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

std::string SecretMaterialEmpty::message() const {
  return "The material of a secret is a string, or an object with at least one string, and no string of it "
         "is empty.";
}
Details SecretMaterialEmpty::details() const {
  return {};
}

std::string SecretMaterialTooLarge::message() const {
  return "The material has " + std::to_string(bytes) + " bytes as JSON; the limit is " +
         std::to_string(limit) + ". Keep large data elsewhere and its key here.";
}
Details SecretMaterialTooLarge::details() const {
  return {{"bytes", bytes}, {"limit", limit}};
}

std::string SecretOriginInvalid::message() const {
  // A reason may be a whole sentence of the URL's own.
  const std::string_view stop = !reason.empty() && reason.back() == '.' ? "" : ".";
  return in_quotes(got) + " is no origin: " + reason + std::string(stop) +
         " Write it as https://host or https://host:port.";
}
Details SecretOriginInvalid::details() const {
  return {{"got", got}, {"reason", reason}};
}

}  // namespace sandboxes
