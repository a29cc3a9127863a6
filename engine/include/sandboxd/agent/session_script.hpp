#pragma once

#include <string>

#include "sandboxd/agent/session.hpp"

namespace sandboxd::agent {

/// The shell's own loop, one line so that line numbers in messages are the command's. A line on the control
/// pipe is `e` (tell the exported variables) or the number of the pipes to use; the script file holds the
/// command, NUL-ended.
std::string session_driver(const std::string& directory);

/// The shell text that runs the second script of the file, in the directory and with the variables that are
/// for this command alone.
std::string wrap_command(const ExecRequest& request);

}  // namespace sandboxd::agent
