#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec.hpp"
#include "session.hpp"

namespace sandboxes::bindings {

/// How the scratch buffer of `call_fields` is laid out: `count` texts with a NUL between any two, in
/// `text_bytes` bytes, and the body from there to `used`.
struct FieldsLayout {
  double handle = 0;
  std::size_t count = 0;
  std::size_t text_bytes = 0;
  std::size_t used = 0;
  bool has_body = false;
};

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

  /// The same for the calls that are made for every request or batch: arguments in a fixed order, as bare
  /// texts. False when they are not so plain that the function reads them like this: then `call` is to be
  /// asked, which says what is wrong if anything is. An answer that does not begin with a brace is texts with
  /// a NUL after each.
  [[nodiscard]] bool call_fields(std::size_t index, const FieldsLayout& layout);

  /// Leaves the names of all functions, in order, with spaces between them, in `answer`.
  void list_functions();

  /// Copies the arguments in and calls by name: for native tests and fuzzers.
  [[nodiscard]] std::string_view call(std::string_view name, std::string_view json,
                                      std::optional<std::string_view> body = std::nullopt);

  [[nodiscard]] std::string_view answer() const { return answer_.text; }
  [[nodiscard]] const std::optional<std::string>& answer_body() const { return answer_.body; }
  [[nodiscard]] Session& session() { return session_; }

 private:
  Result<Output> run(std::size_t index, std::size_t used, bool has_body);
  void release_large_buffers();

  std::unique_ptr<std::uint8_t[]> scratch_;
  std::size_t capacity_ = 0;
  simdjson::dom::parser parser_;
  Session session_;
  std::vector<std::string_view> fields_;
  Answer answer_;
};

/// `{"error": …}` as it crosses the boundary.
[[nodiscard]] std::string print_error(const Error& error);

}  // namespace sandboxes::bindings
