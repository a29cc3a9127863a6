#pragma once

#include "sandboxd/agent/app.hpp"
#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {

/// What a command route was asked to run, and where.
struct CommandRequest {
  std::string session_id;
  ExecRequest exec;
  std::string encoding = "utf8";  ///< or `base64`: output as bytes
};

/// Reads command, sessionId, env, cwd, timeoutMs and encoding.
Result<CommandRequest> read_command(const Json& body);

/// A directory relative to `base`, or as it is when absolute.
std::string join_path(const std::string& base, const std::string& path);

/// Starts a bash of its own in the session's directory and environment. It outlives the session.
Task<Result<std::shared_ptr<Child>>> start_in_session(App& app, const CommandRequest& request);

/// Turns output into text events' data: whole characters only, or base64.
class OutputText {
 public:
  explicit OutputText(bool base64) : base64_(base64) {}
  std::string feed(std::string_view bytes);
  std::string finish();

 private:
  bool base64_;
  Utf8Decoder decoder_;
};

}  // namespace sandboxd::agent
