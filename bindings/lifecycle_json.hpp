#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codec.hpp"
#include "sandboxes/lifecycle.hpp"

namespace sandboxes::bindings {

inline constexpr std::string_view kEventTypePrefix = "events.iterate.com/sandbox/";

/// Reads many fields of one object and remembers the first that is wrong, so that a reader is a list of
/// fields.
class Fields {
 public:
  explicit Fields(Input object) : object_(object) {}

  std::string string(std::string_view key) { return std::string(keep(read_string(object_, key))); }
  std::int64_t integer(std::string_view key) { return keep(read_int(object_, key)); }
  double number(std::string_view key) { return keep(read_number(object_, key)); }
  bool boolean(std::string_view key) { return keep(read_bool(object_, key)); }
  bool flag(std::string_view key) { return keep(read_optional_bool(object_, key)).value_or(false); }
  std::optional<bool> optional_boolean(std::string_view key) {
    return keep(read_optional_bool(object_, key));
  }
  std::optional<double> optional_number(std::string_view key) {
    return keep(read_optional_number(object_, key));
  }
  std::optional<std::int64_t> optional_integer(std::string_view key) {
    return keep(read_optional_int(object_, key));
  }
  std::optional<std::string> optional_string(std::string_view key);
  std::optional<Input> optional_object(std::string_view key) {
    return keep(read_optional_object(object_, key));
  }
  /// As text or as a number; whether it is a length of time was decided when it came in.
  std::optional<lifecycle::SleepAfter> sleep_after(std::string_view key);
  std::vector<Input> array(std::string_view key) { return keep(read_array(object_, key)); }
  std::vector<std::string> strings(std::string_view key);
  std::optional<Input> object(std::string_view key);
  EnvMap env_map(std::string_view key);
  EnvChanges env_changes(std::string_view key);

  /// The value of a nested reader, or a default when it (or an earlier field) is wrong.
  template <class T>
  T keep(Result<T> value) {
    if (value) return std::move(*value);
    if (!error_) error_ = value.error();
    return T{};
  }
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }

  template <class T>
  Result<T> done(T value) {
    if (error_) return tl::unexpected<Error>(*error_);
    return value;
  }
  [[nodiscard]] Input source() const { return object_; }

 private:
  Input object_;
  std::optional<Error> error_;
};

[[nodiscard]] Json sleep_after_json(const lifecycle::SleepAfter& value);
[[nodiscard]] Json state_json(const lifecycle::State& state);
[[nodiscard]] Result<lifecycle::State> read_state(Input object);
[[nodiscard]] Json payload_json(const lifecycle::Payload& payload);
[[nodiscard]] Result<lifecycle::Payload> read_payload(std::string_view name, Input object);
[[nodiscard]] Result<lifecycle::SnapshotHandle> read_handle(Input object);
[[nodiscard]] Json handle_json(const lifecycle::SnapshotHandle& handle);
[[nodiscard]] Result<Identity> read_lifecycle_identity(Input object);

}  // namespace sandboxes::bindings
