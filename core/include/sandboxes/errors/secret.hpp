#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

/// The material has no text at all, or one of its strings is empty: a placeholder for it would send nothing.
struct SecretMaterialEmpty {
  static constexpr ErrorInfo info{"secret_material_empty", 400, false, "A secret's material is empty."};
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretMaterialEmpty&) const = default;
};

struct SecretMaterialTooLarge {
  static constexpr ErrorInfo info{"secret_material_too_large", 413, false,
                                  "A secret's material is over the limit."};
  std::int64_t bytes;
  std::int64_t limit;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretMaterialTooLarge&) const = default;
};

struct SecretOriginInvalid {
  static constexpr ErrorInfo info{"secret_origin_invalid", 400, false,
                                  "A secret is pinned to what is no origin."};
  std::string got;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const SecretOriginInvalid&) const = default;
};

using SecretErrors = std::tuple<SecretMaterialEmpty, SecretMaterialTooLarge, SecretOriginInvalid>;

}  // namespace sandboxes
