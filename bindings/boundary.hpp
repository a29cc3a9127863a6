#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "codec.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

/// The whole door between JavaScript and the core, the same natively and in wasm. The caller reserves a
/// scratch buffer, writes `[u32 length of the JSON][JSON][body]` (little-endian) and calls a function by its
/// index; the answer is the text of `{"value": …}` or `{"error": {code, message, details, status,
/// retryable}}`, and perhaps bytes.
class Boundary {
 public:
  /// A place for `bytes` bytes, or null when that is over the limit or there is no memory.
  [[nodiscard]] std::uint8_t* reserve(std::size_t bytes);

  /// Runs function number `index` on the first `used` bytes of the scratch buffer.
  void call(std::size_t index, std::size_t used, bool has_body);

  /// Copies the arguments in and calls by name: for native tests and fuzzers.
  [[nodiscard]] std::string_view call(std::string_view name, std::string_view json,
                                      std::optional<std::string_view> body = std::nullopt);

  [[nodiscard]] std::string_view answer() const { return answer_; }
  [[nodiscard]] const std::optional<std::string>& answer_body() const { return answer_body_; }
  [[nodiscard]] Session& session() { return session_; }

 private:
  Result<Output> run(std::size_t index, std::size_t used, bool has_body);
  void release_large_buffers();

  std::unique_ptr<std::uint8_t[]> scratch_;
  std::size_t capacity_ = 0;
  simdjson::dom::parser parser_;
  Session session_;
  std::string answer_;
  std::optional<std::string> answer_body_;
};

/// `{"error": …}` as it crosses the boundary.
[[nodiscard]] std::string print_error(const Error& error);

}  // namespace sandboxes::bindings
