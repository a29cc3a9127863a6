#pragma once

#include <optional>
#include <string>

#include "codec.hpp"
#include "sandboxes/http.hpp"
#include "sandboxes/openai.hpp"
#include "sandboxes/placeholders.hpp"

namespace sandboxes::bindings {

/// `{ method?, url, headers? }`; the body travels beside the arguments. Absent means GET and no headers.
[[nodiscard]] Result<RequestView> read_request(Input object, std::string_view body);
[[nodiscard]] Result<HeaderList> read_headers(Input object);
/// `gateway`: null, or `{ apiKey, cacheTtlSeconds, metadata }`.
[[nodiscard]] Result<std::optional<Gateway>> read_gateway(Input object);
[[nodiscard]] Json headers_json(const OwnedHeaders& headers);
[[nodiscard]] std::string references_text(const std::vector<Reference>& references);
/// Names and values in turn, from field `first` on; nothing when they do not pair.
[[nodiscard]] std::optional<HeaderList> read_header_fields(std::span<const std::string_view> fields,
                                                           std::size_t first);
/// JSON text with the members in the order given, in ASCII, so that it can be a header's value.
[[nodiscard]] std::string header_text(Input value);

}  // namespace sandboxes::bindings
