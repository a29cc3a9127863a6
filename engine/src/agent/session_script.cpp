#include "sandboxd/agent/session_script.hpp"

#include <algorithm>
#include <array>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

/// Shell text about one variable, whose name stands for each `%`.
std::string about(std::string_view name, std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '%') out.append(name);
    if (letter != '%') out.push_back(letter);
  }
  return out;
}

/// Read by bash or its libraries as it starts, kept by it, or not to be set: see "Shell Variables" in its
/// manual. A locale that is not installed, for one, leaves a shell as it is, but not one that starts with it.
constexpr std::array<std::string_view, 37> kShellsOwn{
    "_",         "COPROC",   "DIRSTACK",   "ENV",       "EPOCHREALTIME", "EPOCHSECONDS", "EUID",
    "FUNCNAME",  "FUNCNEST", "GLOBIGNORE", "GROUPS",    "HISTCMD",       "HOSTTYPE",     "IFS",
    "IGNOREEOF", "LINENO",   "LOCPATH",    "MACHTYPE",  "MAPFILE",       "NLSPATH",      "OLDPWD",
    "OPTARG",    "OPTERR",   "OPTIND",     "OSTYPE",    "PIPESTATUS",    "PPID",         "PWD",
    "RANDOM",    "REPLY",    "SECONDS",    "SHELLOPTS", "SHLVL",         "SRANDOM",      "TMOUT",
    "UID",       "ignoreeof"};
constexpr std::array<std::string_view, 10> kShellsPrefixes{"BASH", "COMP_",   "GLIBC_", "LANG", "LC_",
                                                           "LD_",  "MALLOC_", "POSIX",  "PS",   "__sx_"};

}  // namespace

bool is_plain_variable(std::string_view name) {
  const auto letter = [](char one) {
    return one == '_' || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
  };
  if (name.empty() || !letter(name.front())) return false;
  if (!std::all_of(name.begin(), name.end(),
                   [&](char one) { return letter(one) || (one >= '0' && one <= '9'); }))
    return false;
  const auto is_prefix = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::find(kShellsOwn.begin(), kShellsOwn.end(), name) == kShellsOwn.end() &&
         std::none_of(kShellsPrefixes.begin(), kShellsPrefixes.end(), is_prefix);
}

std::string session_driver(const std::string& directory) {
  const std::string quoted = shell_quote(directory);
  return "__sx_r() { return \"$1\"; }; while IFS= builtin read -r -u 198 __sx_n; do if [[ $__sx_n == e ]]; "
         "then "
         "/usr/bin/env -0 >&199; builtin printf '\\0' >&199; elif [[ $__sx_n == v ]]; then builtin mapfile "
         "-d '' "
         "-t __sx_c <" +
         quoted +
         "/v; builtin export -- \"${__sx_c[@]}\"; SECONDS=0; else builtin mapfile -d '' -t __sx_c <" +
         quoted + "/c; { builtin eval \"${__sx_c[0]}\"; } </dev/null >" + quoted + "/\"o$__sx_n\" 2>" +
         quoted + "/\"e$__sx_n\" 198<&- 199>&-; builtin printf '%d\\n' \"$?\" >&199; fi; done";
}

std::string wrap_command(const ExecRequest& request) {
  constexpr std::string_view kSet = "__sx_a_%=${%+${%@a}+}; __sx_v_%=${%-}; export %=";
  constexpr std::string_view kReset =
      "if [[ -n $__sx_a_% ]]; then %=$__sx_v_%; [[ $__sx_a_% == *x*+ ]] || export -n %; else unset %; fi; "
      "unset __sx_a_% __sx_v_%; ";
  std::string before = "__sx_o=$PWD; ";
  if (request.cwd) before.append("builtin cd -- ").append(shell_quote(*request.cwd)).append(" && ");
  before += "{ ";
  std::string after = " __sx_s=$?; ";
  for (const auto& [name, value] : request.env) {
    before.append(about(name, kSet)).append(shell_quote(value)).append("; ");
    after += about(name, kReset);
  }
  before += "builtin eval \"${__sx_c[1]}\";";
  if (request.cwd) after += "builtin cd -- \"$__sx_o\"; ";
  after += "__sx_r \"$__sx_s\"; }";
  return before + after;
}

}  // namespace sandboxd::agent
