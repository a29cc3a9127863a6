#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/url.hpp"

namespace sandboxes::internal {

/// Where the credentials of an `Authorization: Basic` value stand, whatever the header is called.
[[nodiscard]] std::optional<Range> basic_token(std::string_view value);
/// Credentials in either alphabet, padded or not: clients differ, and an unread placeholder would go out as
/// it is.
[[nodiscard]] std::optional<std::string> decode_basic(std::string_view token);

/// Percent-decoded text that knows where each of its bytes came from.
struct DecodedText {
  /// `offset` is where `raw` begins in the text that the offsets are to point into.
  DecodedText(std::string_view raw, std::size_t offset);
  std::string text;
  std::vector<std::size_t> offsets;  ///< one more than there are bytes
};

}  // namespace sandboxes::internal
