#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace sandboxd::agent {

using Json = nlohmann::json;

/// A failure as the SDK's clients understand it: `code` is one of the SDK's own, `context` what its error
/// class reads.
struct AgentError {
  std::string_view code = "INTERNAL_ERROR";
  std::string message;
  Json context = Json::object();
  std::string_view operation = {};
};

template <class T>
using Result = tl::expected<T, AgentError>;

/// HTTP status that the SDK maps to its error class; 500 for a code without an entry.
int http_status(std::string_view code);

/// The SDK's error body: code, message, context, httpStatus, timestamp, suggestion.
std::string error_body(const AgentError& error);

/// What to do about it, for the codes where there is something to say.
std::string suggestion(const AgentError& error);

/// Maps errno of a call on `path` to the SDK's file error; the context carries path, errno and its name.
AgentError file_error(int error_number, std::string_view what, std::string_view path,
                      std::string_view operation = {});

/// The request itself is wrong: VALIDATION_FAILED with the field's name.
AgentError invalid(std::string_view field, std::string message);

inline tl::unexpected<AgentError> fail(AgentError error) {
  return tl::unexpected<AgentError>(std::move(error));
}

}  // namespace sandboxd::agent
