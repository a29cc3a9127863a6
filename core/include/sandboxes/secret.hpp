#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxes/result.hpp"

/// What may be stored as a secret, where it may be pinned, and what of a response has to be blotted out.
namespace sandboxes {

/// Material as JSON text. A sealed row stays far below what one SQLite row may hold.
inline constexpr std::int64_t kMaxSecretBytes = std::int64_t{64} * 1024;
/// More origins than one service has are a mistake, and each is compared at every use.
inline constexpr std::size_t kMaxSecretOrigins = 32;
/// Shorter values would blot out ordinary words of a response.
inline constexpr std::size_t kMinScrubBytes = 6;

/// Every string of the material, however deep, and its size as JSON text.
[[nodiscard]] Result<void> check_secret_material(std::span<const std::string_view> strings,
                                                 std::int64_t json_bytes);

/// The origins in their one spelling, each once, in the order given. At least one is needed.
[[nodiscard]] Result<std::vector<std::string>> check_secret_origins(
    std::span<const std::string_view> origins);

/// Every spelling in which a value can come back: raw, in JSON, percent-encoded, and as it looks inside
/// base64 of either alphabet at each of the three alignments. Each once; values below `kMinScrubBytes` have
/// none.
[[nodiscard]] std::vector<std::string> scrub_patterns(std::span<const std::string_view> values);

}  // namespace sandboxes
