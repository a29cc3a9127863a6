#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sandboxes/http.hpp"
#include "sandboxes/result.hpp"
#include "sandboxes/url.hpp"

namespace sandboxes {

enum class ReferenceKind : std::uint8_t { secret, platform };

/// What one placeholder names: a secret of the project, perhaps one field of it, or a key of the platform.
struct Reference {
  ReferenceKind kind = ReferenceKind::secret;
  std::string path;
  std::optional<std::string> field = std::nullopt;
  bool operator==(const Reference&) const = default;
};

/// `secret:<path>#<field>`, `secret:<path>` or `platform:<path>`.
[[nodiscard]] std::string reference_key(const Reference& reference);

// ---- The grammar

/// A placeholder ends at `end`, or the text at `position` is why there is none.
struct FoundPlaceholder {
  Reference reference;
  std::size_t end = 0;
};
struct MalformedPlaceholder {
  std::size_t position = 0;
  std::string reason;
  bool wrong_path = false;  ///< well-formed, but the path is no secret's
  std::string path;
};
/// The name is there, and what follows is prose: no opening parenthesis, or a space and then nothing quoted.
struct NoPlaceholder {};
using PlaceholderParse = std::variant<NoPlaceholder, FoundPlaceholder, MalformedPlaceholder>;

/// Next `getSecret` at or after `from`.
[[nodiscard]] std::size_t find_placeholder_name(std::string_view text, std::size_t from);
/// Reads the placeholder whose name stands at `position`.
[[nodiscard]] PlaceholderParse parse_placeholder(std::string_view text, std::size_t position);
/// Whether anything in the text is, or begins like, a placeholder.
[[nodiscard]] bool mentions_placeholder(std::string_view text);

// ---- Requests

/// Where placeholders were found in a request, with what has to be replaced.
struct PlaceholderSite {
  enum class Place : std::uint8_t { header, basic, path, body };
  Place place = Place::header;
  std::size_t header = 0;  ///< index of the header, for `header` and `basic`
  Range range;             ///< in the header's value, the decoded credentials, the URL or the body
  std::size_t reference = 0;
};

struct PlaceholderScan {
  std::vector<Reference> references;  ///< each once, in order of appearance
  std::vector<PlaceholderSite> sites;
  /// The first that does not name the same secret as the first of all.
  [[nodiscard]] const Reference* foreign() const;
};

/// Finds every placeholder of a request, or says which one is malformed or stands where none may.
/// Several secrets in one request are found, not refused; `require_one_secret` does that.
[[nodiscard]] Result<PlaceholderScan> scan_placeholders(const RequestView& request);
[[nodiscard]] Result<void> require_one_secret(const PlaceholderScan& scan);

/// Reference key and value.
using SecretValues = std::vector<std::pair<std::string_view, std::string_view>>;

struct SubstitutedRequest {
  std::string url;
  OwnedHeaders headers;
  std::optional<std::string> body;  ///< nothing when it is the request's own
};

/// The request with every placeholder's own bytes replaced and every other byte as it was. One pass: a value
/// that looks like a placeholder is not read again.
[[nodiscard]] Result<SubstitutedRequest> substitute_placeholders(const RequestView& request,
                                                                 const SecretValues& values);

}  // namespace sandboxes
