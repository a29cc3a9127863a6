#include "boundary.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "sandboxes/limits.hpp"

namespace sandboxes::bindings {

namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
/// The scratch buffer and the parsers keep their memory between calls up to this size.
constexpr std::size_t kKeptBytes = std::size_t{1024} * 1024;

Json details_json(const Details& details) {
  Json json = Json::object();
  for (const auto& [name, value] : details) {
    std::visit([&json, key = std::string(name)](const auto& one) { json[key] = one; }, value);
  }
  return json;
}

}  // namespace

std::string print_error(const Error& error) {
  const ErrorReport report = describe(error);
  Json json = Json::object();
  json["code"] = report.code;
  json["message"] = report.message;
  json["details"] = details_json(report.details);
  json["status"] = report.status;
  json["retryable"] = report.retryable;
  return print(Json{{"error", std::move(json)}});
}

std::uint8_t* Boundary::reserve(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(kMaxInputBytes) + kLengthBytes) return nullptr;
  if (bytes > capacity_ || scratch_ == nullptr) {
    // The old buffer goes first: its content is never wanted, and both may not fit.
    scratch_.reset();
    capacity_ = 0;
    const std::size_t wanted = bytes < 4096 ? 4096 : bytes;
    scratch_.reset(new (std::nothrow) std::uint8_t[wanted + simdjson::SIMDJSON_PADDING]);
    if (scratch_ == nullptr) return nullptr;
    std::memset(scratch_.get() + wanted, 0, simdjson::SIMDJSON_PADDING);
    capacity_ = wanted;
  }
  return scratch_.get();
}

void Answer::set(Result<Output> output) {
  body.reset();
  if (!output) {
    text = print_error(output.error());
    return;
  }
  body = std::move(output->body);
  text = "{\"value\":";
  text += output->text.empty() ? print(output->json) : output->text;
  text += '}';
}

void Boundary::call(std::size_t index, std::size_t used, bool has_body) {
  answer_.set(run(index, used, has_body));
  if (used > kKeptBytes) release_large_buffers();
}

bool Boundary::call_fields(std::size_t index, const FieldsLayout& layout) {
  const auto functions = all_functions();
  if (index >= functions.size() || functions[index].fields == nullptr) return false;
  if (layout.used > capacity_ || layout.text_bytes > layout.used) return false;
  const auto* bytes = reinterpret_cast<const char*>(scratch_.get());
  std::string_view text(bytes, layout.text_bytes);
  fields_.clear();
  while (fields_.size() < layout.count) {
    const std::size_t end = text.find('\0');
    fields_.push_back(text.substr(0, end));
    const bool last = end == std::string_view::npos;
    if (last != (fields_.size() == layout.count)) return false;
    text = last ? std::string_view() : text.substr(end + 1);
  }
  const std::string_view body(bytes + layout.text_bytes, layout.used - layout.text_bytes);
  answer_.body.reset();
  const FieldsInput input{fields_, layout.handle, body, layout.has_body, parser_, session_};
  const bool answered = functions[index].fields(input, answer_);
  if (layout.used > kKeptBytes) release_large_buffers();
  return answered;
}

void Boundary::list_functions() {
  answer_ = {};
  for (const auto& entry : all_functions()) {
    if (!answer_.text.empty()) answer_.text += ' ';
    answer_.text += entry.name;
  }
}

Result<Output> Boundary::run(std::size_t index, std::size_t used, bool has_body) {
  const auto functions = all_functions();
  if (index >= functions.size()) return fail(UnknownFunction{"number " + std::to_string(index)});
  if (used > capacity_ || used < kLengthBytes)
    return fail(InvalidJson{"call", "the scratch buffer is too short"});
  std::uint32_t length = 0;
  std::memcpy(&length, scratch_.get(), kLengthBytes);
  if (length > used - kLengthBytes)
    return fail(InvalidJson{"call", "the JSON is longer than the scratch buffer"});
  const std::uint8_t* json = scratch_.get() + kLengthBytes;
  const auto text = std::string_view(reinterpret_cast<const char*>(json), length);
  const auto arguments = parse_padded(parser_, text, "input");
  if (!arguments) return propagate(arguments);
  if (!arguments->is_object()) return fail(wrong_type("input", *arguments, "an object"));
  const auto body = std::span<const std::uint8_t>(json + length, used - kLengthBytes - length);
  return functions[index].function(CallInput{*arguments, body, has_body, session_});
}

std::string_view Boundary::call(std::string_view name, std::string_view json,
                                std::optional<std::string_view> body) {
  const auto functions = all_functions();
  std::size_t index = 0;
  while (index < functions.size() && functions[index].name != name) ++index;
  const std::size_t used = kLengthBytes + json.size() + (body ? body->size() : 0);
  answer_.body.reset();
  if (index == functions.size()) {
    answer_.text = print_error(UnknownFunction{std::string(name)});
  } else if (std::uint8_t* place = reserve(used); place == nullptr) {
    answer_.text =
        print_error(InputTooLarge{"input", static_cast<std::int64_t>(used - kLengthBytes), kMaxInputBytes});
  } else {
    const auto length = static_cast<std::uint32_t>(json.size());
    std::memcpy(place, &length, kLengthBytes);
    // An empty view may have no address, which memcpy does not take.
    std::uint8_t* end = std::copy(json.begin(), json.end(), place + kLengthBytes);
    if (body) std::copy(body->begin(), body->end(), end);
    call(index, used, body.has_value());
  }
  return answer_.text;
}

void Boundary::release_large_buffers() {
  scratch_.reset();
  capacity_ = 0;
  parser_ = simdjson::dom::parser();
  session_.body_parser = simdjson::dom::parser();
}

}  // namespace sandboxes::bindings
