#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandboxd/agent/session.hpp"

namespace sandboxd::agent {

/// The shell's own loop, one line so that line numbers in messages are the command's. A line on the control
/// pipe is `e` (tell the exported variables), `v` (export those that the file holds, NUL-ended) or the number
/// of the pipes to use; the script file holds the command, NUL-ended.
std::string session_driver(const std::string& directory);

/// Whether a shell that is told to export the variable is then as one that was started with it. Some names
/// mean something to bash as it starts, or cannot be set at all.
bool is_plain_variable(std::string_view name);

/// The shell text that runs the second script of the file, in the directory and with the variables that are
/// for this command alone.
std::string wrap_command(const ExecRequest& request);

/// The words of a command that any shell would take for no more than these: plain ones and such in single
/// quotes.
std::optional<std::vector<std::string>> plain_words(std::string_view command);

}  // namespace sandboxd::agent
