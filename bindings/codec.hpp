#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandboxes/result.hpp"

namespace sandboxes::bindings {

struct Session;

/// JSON that is built. Keys are sorted, so that equal values print as equal text.
using Json = nlohmann::json;
/// JSON that is read: simdjson's view of a document that outlives the call.
using Input = simdjson::dom::element;

/// What a boundary function is given: the JSON object of its arguments, and at most one run of bytes that
/// travels beside it (a request body, a batch of events), followed by at least SIMDJSON_PADDING readable
/// bytes.
struct CallInput {
  Input json;
  std::span<const std::uint8_t> body;
  bool has_body = false;
  Session& session;

  [[nodiscard]] std::string_view body_text() const {
    return {reinterpret_cast<const char*>(body.data()), body.size()};
  }
};

struct Output {
  Json json;
  std::optional<std::string> body = std::nullopt;
  /// Instead of `json` where it is not empty: the value as JSON text.
  std::string text = {};
};

/// What crosses back.
struct Answer {
  std::string text;
  std::optional<std::string> body;

  void set(Result<Output> output);
};

/// What `Boundary::call_fields` hands over: texts in an order that the function and its caller share, which
/// are ASCII and hold no NUL, a handle, and the body, which SIMDJSON_PADDING readable bytes follow as they do
/// every text.
struct FieldsInput {
  std::span<const std::string_view> fields;
  double handle = 0;
  std::string_view body;
  bool has_body = false;
  simdjson::dom::parser& parser;
  Session& session;
};

using Function = Result<Output> (*)(const CallInput&);
/// Answers with JSON, as other functions do, or with texts and a NUL after each, in an order that is shared
/// too: JSON.parse would take longer than all else. False when the call is to be made with JSON.
using FieldsFunction = bool (*)(const FieldsInput&, Answer& answer);

struct FunctionEntry {
  std::string_view name;
  Function function;
  FieldsFunction fields = nullptr;
};

// ---- Reading. A key that occurs twice counts with its last value, as in JSON.parse. Errors name the key.

/// The value of `key`, or nothing when it is absent. `null` is a value here.
[[nodiscard]] std::optional<Input> find(Input object, std::string_view key);
/// The value of `key`; absent and null are refused.
[[nodiscard]] Result<Input> read_value(Input object, std::string_view key);
[[nodiscard]] Result<Input> read_object(Input object, std::string_view key);
[[nodiscard]] Result<std::vector<Input>> read_array(Input object, std::string_view key);
[[nodiscard]] Result<std::string_view> read_string(Input object, std::string_view key);
[[nodiscard]] Result<std::int64_t> read_int(Input object, std::string_view key);
[[nodiscard]] Result<double> read_number(Input object, std::string_view key);
[[nodiscard]] Result<bool> read_bool(Input object, std::string_view key);
[[nodiscard]] Result<std::vector<std::string_view>> read_strings(Input object, std::string_view key);
/// An object whose values are strings, in order of appearance and with the last of equal keys.
[[nodiscard]] Result<std::vector<std::pair<std::string_view, std::string_view>>> read_string_map(
    Input object, std::string_view key);
/// An array of `[name, value]` pairs of strings.
[[nodiscard]] Result<std::vector<std::pair<std::string_view, std::string_view>>> read_pairs(
    Input object, std::string_view key);

// The optional forms: absent and null are nothing, any other wrong type is refused.
[[nodiscard]] Result<std::optional<Input>> read_optional_object(Input object, std::string_view key);
[[nodiscard]] Result<std::optional<std::vector<Input>>> read_optional_array(Input object,
                                                                            std::string_view key);
[[nodiscard]] Result<std::optional<std::string_view>> read_optional_string(Input object,
                                                                           std::string_view key);
[[nodiscard]] Result<std::optional<std::int64_t>> read_optional_int(Input object, std::string_view key);
[[nodiscard]] Result<std::optional<double>> read_optional_number(Input object, std::string_view key);
[[nodiscard]] Result<std::optional<bool>> read_optional_bool(Input object, std::string_view key);
[[nodiscard]] Result<std::optional<std::vector<std::string_view>>> read_optional_strings(
    Input object, std::string_view key);

/// The refusal of a value that is not what `allowed` says.
[[nodiscard]] Error wrong_type(std::string_view field, std::optional<Input> got, std::string_view allowed);
/// `a string`, `null`, `an array`, ... for messages.
[[nodiscard]] std::string type_name(std::optional<Input> value);

/// A copy of what was read, with the last of equal keys.
[[nodiscard]] Json to_json(Input value);
/// Text of what was built, with every character beyond ASCII escaped where `ascii` is asked for. Bytes that
/// are not UTF-8 become U+FFFD; nothing of ours builds such. (nlohmann's `dump` would bring printf into the
/// wasm.)
[[nodiscard]] std::string print(const Json& json, bool ascii = false);
/// Appends a text as a JSON string.
void append_string(std::string& out, std::string_view text);

/// An object as JSON text, member by member: for answers that are made so often that no `Json` is built for
/// them. Names are plain ASCII.
class ObjectText {
 public:
  void raw(std::string_view name, std::string_view json);
  void string(std::string_view name, std::string_view text);
  /// Null for nothing.
  void optional_string(std::string_view name, const std::optional<std::string>& text);
  void integer(std::string_view name, std::int64_t number) { raw(name, std::to_string(number)); }
  void strings(std::string_view name, const std::vector<std::string>& texts);
  void boolean(std::string_view name, bool flag) { raw(name, flag ? "true" : "false"); }
  [[nodiscard]] std::string take() { return std::move(out_ += '}'); }

 private:
  void name(std::string_view name);

  std::string out_ = "{";
};

/// An array as JSON text.
class ArrayText {
 public:
  void raw(std::string_view json);
  [[nodiscard]] std::string take() { return std::move(out_ += ']'); }

 private:
  std::string out_ = "[";
};

/// An answer that is text already.
[[nodiscard]] Output text_output(std::string json);

/// Parses bytes that are followed by SIMDJSON_PADDING readable bytes, within the limits of depth and size.
/// `what` names them in errors. The element lives as long as `parser` is not used again.
[[nodiscard]] Result<Input> parse_padded(simdjson::dom::parser& parser, std::string_view bytes,
                                         std::string_view what);

// ---- One list of functions a domain, defined in codec_<domain>.cpp and joined in functions.cpp.

[[nodiscard]] std::span<const FunctionEntry> catalogue_functions();
[[nodiscard]] std::span<const FunctionEntry> deployment_functions();
[[nodiscard]] std::span<const FunctionEntry> egress_functions();
[[nodiscard]] std::span<const FunctionEntry> environment_functions();
[[nodiscard]] std::span<const FunctionEntry> event_functions();
[[nodiscard]] std::span<const FunctionEntry> identity_functions();
[[nodiscard]] std::span<const FunctionEntry> lifecycle_functions();
[[nodiscard]] std::span<const FunctionEntry> openai_functions();
[[nodiscard]] std::span<const FunctionEntry> placeholder_functions();
[[nodiscard]] std::span<const FunctionEntry> projection_functions();
[[nodiscard]] std::span<const FunctionEntry> secret_functions();
[[nodiscard]] std::span<const FunctionEntry> snapshot_functions();
[[nodiscard]] std::span<const FunctionEntry> table_functions();

/// All of them, in an order that is fixed within one build.
[[nodiscard]] std::span<const FunctionEntry> all_functions();

}  // namespace sandboxes::bindings
