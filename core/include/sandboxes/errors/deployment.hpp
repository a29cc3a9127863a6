#pragma once

#include <string>
#include <tuple>

#include "sandboxes/errors/info.hpp"

namespace sandboxes {

struct InvalidEnvironment {
  static constexpr ErrorInfo info{"invalid_environment", 400, false, "There is no environment of this name."};
  std::string got;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidEnvironment&) const = default;
};

/// A history of migrations that no Worker can have applied: a tag twice, a class made twice or ended unmade.
struct InvalidMigrations {
  static constexpr ErrorInfo info{"invalid_migrations", 400, false,
                                  "A migration history contradicts itself."};
  std::string tag;
  std::string reason;
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const InvalidMigrations&) const = default;
};

/// Deleting a Durable Object class deletes the storage of every object of it, so it has to be asked for by
/// name.
struct WouldDeleteClass {
  static constexpr ErrorInfo info{"would_delete_class", 409, false,
                                  "A migration would delete a class and its data."};
  std::string classes;  ///< separated by a comma and a space
  [[nodiscard]] std::string message() const;
  [[nodiscard]] Details details() const;
  bool operator==(const WouldDeleteClass&) const = default;
};

using DeploymentErrors = std::tuple<InvalidEnvironment, InvalidMigrations, WouldDeleteClass>;

}  // namespace sandboxes
