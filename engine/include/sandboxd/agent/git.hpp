#pragma once

#include <string>
#include <string_view>

#include "sandboxd/agent/error.hpp"

namespace sandboxd::agent {

/// Last part of a repository's URL without `.git`; `repository` when there is none.
std::string repository_name(std::string_view url);

/// Takes user names and passwords out of every URL in the text.
std::string redact_urls(std::string text);

/// What a failed clone says on standard error, as the SDK's error.
struct CloneFailure {
  std::string url;
  std::string branch;
  std::string target;
  std::string stderr_text;
  int exit_code = 0;
  bool timed_out = false;
};
AgentError clone_error(const CloneFailure& failure);

/// Refuses what git would take for an option or a helper program.
Result<void> check_git_url(const std::string& url);

}  // namespace sandboxd::agent
