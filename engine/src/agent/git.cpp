#include "sandboxd/agent/git.hpp"

#include <algorithm>
#include <array>

#include "sandboxd/agent/commands.hpp"
#include "sandboxd/agent/files.hpp"
#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr auto kDefaultTimeout = std::chrono::milliseconds(600000);

struct PhraseRow {
  std::string_view phrase;
  std::string_view code;
};

/// First match wins: git names the cause first and repeats a general line after it.
constexpr std::array kPhrases = {
    PhraseRow{"Authentication failed", "GIT_AUTH_FAILED"},
    PhraseRow{"could not read Username", "GIT_AUTH_FAILED"},
    PhraseRow{"could not read Password", "GIT_AUTH_FAILED"},
    PhraseRow{"terminal prompts disabled", "GIT_AUTH_FAILED"},
    PhraseRow{"Permission denied (publickey", "GIT_AUTH_FAILED"},
    PhraseRow{"The requested URL returned error: 401", "GIT_AUTH_FAILED"},
    PhraseRow{"The requested URL returned error: 403", "GIT_AUTH_FAILED"},
    PhraseRow{"Remote branch", "GIT_BRANCH_NOT_FOUND"},
    PhraseRow{"Could not resolve host", "GIT_NETWORK_ERROR"},
    PhraseRow{"Failed to connect", "GIT_NETWORK_ERROR"},
    PhraseRow{"Couldn't connect", "GIT_NETWORK_ERROR"},
    PhraseRow{"Connection refused", "GIT_NETWORK_ERROR"},
    PhraseRow{"Connection timed out", "GIT_NETWORK_ERROR"},
    PhraseRow{"Connection reset", "GIT_NETWORK_ERROR"},
    PhraseRow{"Could not resolve hostname", "GIT_NETWORK_ERROR"},
    PhraseRow{"The requested URL returned error: 404", "GIT_REPOSITORY_NOT_FOUND"},
    PhraseRow{"The requested URL returned error: 5", "GIT_NETWORK_ERROR"},
    PhraseRow{"Repository not found", "GIT_REPOSITORY_NOT_FOUND"},
    PhraseRow{"not found", "GIT_REPOSITORY_NOT_FOUND"},
    PhraseRow{"does not appear to be a git repository", "GIT_REPOSITORY_NOT_FOUND"},
    PhraseRow{"does not exist", "GIT_REPOSITORY_NOT_FOUND"},
    PhraseRow{"unable to access", "GIT_NETWORK_ERROR"},
};

struct Clone {
  std::string url;
  std::string branch;
  std::string target;
  std::string session_id;
  std::optional<int> depth;
  std::chrono::milliseconds timeout = kDefaultTimeout;
};

Result<Clone> read_clone(App& app, const Json& body) {
  Clone clone;
  auto url = required_string(body, "repoUrl");
  if (!url) return fail(std::move(url.error()));
  clone.url = std::move(*url);
  if (auto checked = check_git_url(clone.url); !checked) return fail(std::move(checked.error()));
  auto branch = optional_string(body, "branch");
  if (!branch) return fail(std::move(branch.error()));
  clone.branch = branch->value_or("");
  if (clone.branch.starts_with('-') || clone.branch.find('\0') != std::string::npos) {
    return fail(invalid("branch", "'" + clone.branch + "' is no name of a branch"));
  }
  auto session = optional_string(body, "sessionId");
  if (!session) return fail(std::move(session.error()));
  clone.session_id = session->value_or("");
  auto target = optional_string(body, "targetDir");
  if (!target) return fail(std::move(target.error()));
  const std::string named = target->value_or("");
  auto path = named.empty()
                  ? Result<std::string>(join_path(app.runtime.config().workspace, repository_name(clone.url)))
                  : resolve_path(app, clone.session_id, named, "targetDir");
  if (!path) return fail(std::move(path.error()));
  clone.target = std::move(*path);
  auto depth = optional_number(body, "depth");
  if (!depth) return fail(std::move(depth.error()));
  if (*depth) {
    if (!(**depth >= 1 && **depth < 2147483647) || **depth != static_cast<int>(**depth)) {
      return fail(invalid("depth", "'depth' must be a whole number above 0"));
    }
    clone.depth = static_cast<int>(**depth);
  }
  auto timeout = optional_timeout(body, "timeoutMs");
  if (!timeout) return fail(std::move(timeout.error()));
  clone.timeout = timeout->value_or(kDefaultTimeout);
  return clone;
}

Task<Result<CommandResult>> run_git(App& app, const std::map<std::string, std::string>& env,
                                    std::vector<std::string> arguments, std::chrono::milliseconds timeout,
                                    Cancellation* cancellation) {
  if (auto room = co_await app.runtime.room(); !room) co_return fail(std::move(room.error()));
  SpawnRequest request;
  const auto path = env.find("PATH");
  const std::string program = find_program("git", path == env.end() ? "/usr/bin:/bin" : path->second);
  request.argv = {program.empty() ? "/usr/bin/git" : program};
  for (auto& argument : arguments) request.argv.push_back(std::move(argument));
  request.env = env_list(env);
  request.cwd = "/";
  auto child = Child::start(app.runtime, std::move(request));
  if (!child) co_return fail(std::move(child.error()));
  CommandLimits limits;
  limits.timeout = timeout;
  co_return co_await (*child)->collect(limits, cancellation, "git");
}

Task<std::map<std::string, std::string>> git_env(App& app, const std::string& session_id) {
  auto env = app.runtime.base_env();
  if (const auto session = is_sessionless(session_id) ? nullptr : app.sessions->find(session_id)) {
    env = co_await session->environment();
  }
  env["GIT_TERMINAL_PROMPT"] = "0";
  env.try_emplace("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new");
  co_return env;
}

Task<Result<Response>> checkout(App& app, Request& request) {
  auto body = request.json();
  if (!body) co_return fail(std::move(body.error()));
  auto clone = read_clone(app, *body);
  if (!clone) co_return fail(std::move(clone.error()));
  const auto env = co_await git_env(app, clone->session_id);
  std::vector<std::string> arguments = {"clone", "--quiet"};
  if (!clone->branch.empty()) arguments.insert(arguments.end(), {"--branch", clone->branch});
  if (clone->depth) arguments.insert(arguments.end(), {"--depth", std::to_string(*clone->depth)});
  arguments.insert(arguments.end(), {"--", clone->url, clone->target});
  auto result = co_await run_git(app, env, std::move(arguments), clone->timeout, request.cancellation.get());
  if (!result) co_return fail(std::move(result.error()));
  if (result->exit_code != 0) {
    CloneFailure failure{clone->url,  clone->branch,     clone->target,
                         result->err, result->exit_code, result->timed_out};
    co_return fail(clone_error(failure));
  }
  std::string branch = clone->branch;
  std::vector<std::string> ask = {"-C", clone->target, "branch", "--show-current"};
  auto current = co_await run_git(app, env, std::move(ask), kDefaultTimeout, nullptr);
  if (current && current->exit_code == 0 && current->out.size() > 1) {
    branch = current->out.substr(0, current->out.find('\n'));
  }
  co_return json_response({{"success", true},
                           {"repoUrl", redact_urls(clone->url)},
                           {"branch", branch.empty() ? "HEAD" : branch},
                           {"targetDir", clone->target},
                           {"exitCode", 0},
                           {"timestamp", iso_timestamp()}});
}

constexpr Route kGitRoutes[] = {
    {"POST", "/api/git/checkout", checkout},
};

}  // namespace

std::string repository_name(std::string_view url) {
  const std::size_t end = url.find_first_of("?#");
  url = url.substr(0, end);
  while (!url.empty() && (url.back() == '/' || url.back() == ':')) url.remove_suffix(1);
  const std::size_t start = url.find_last_of(":/");
  std::string_view name = start == std::string_view::npos ? std::string_view() : url.substr(start + 1);
  if (name.ends_with(".git")) name.remove_suffix(4);
  if (name.empty() || name == "." || name == "..") return "repository";
  return std::string(name);
}

std::string redact_urls(std::string text) {
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const std::size_t begin = at + 3;
    const std::size_t end = std::min(text.find_first_of("/?# \t\r\n'\"", begin), text.size());
    const std::size_t sign = text.rfind('@', end);
    if (sign != std::string::npos && sign >= begin && sign < end) text.replace(begin, sign - begin, "******");
  }
  return text;
}

AgentError clone_error(const CloneFailure& failure) {
  const auto* row = std::ranges::find_if(kPhrases, [&](const PhraseRow& phrase) {
    return failure.stderr_text.find(phrase.phrase) != std::string::npos;
  });
  AgentError error;
  error.code = failure.timed_out || row == kPhrases.end() ? std::string_view("GIT_CLONE_FAILED") : row->code;
  const std::string url = redact_urls(failure.url);
  const std::string said = redact_urls(to_utf8(failure.stderr_text));
  error.message = "Cannot clone '" + url + "'" + (failure.timed_out ? " in time" : "") + ": " + said;
  error.operation = "git.clone";
  error.context = {
      {"repository", url}, {"targetDir", failure.target}, {"stderr", said}, {"exitCode", failure.exit_code}};
  if (!failure.branch.empty()) error.context["branch"] = failure.branch;
  return error;
}

Result<void> check_git_url(const std::string& url) {
  const bool blank = url.find_first_not_of(" \t\r\n") == std::string::npos;
  const bool control = std::ranges::any_of(url, [](unsigned char byte) { return byte < 0x20; });
  // `helper::address` runs a program of git's own choosing.
  const bool helper = url.find("::") != std::string::npos && url.find("://") == std::string::npos;
  if (!blank && !control && !helper && !url.starts_with('-')) return {};
  AgentError error{"INVALID_GIT_URL", "'" + redact_urls(url) + "' is no URL of a git repository"};
  error.context = {{"validationErrors",
                    Json::array({{{"field", "repoUrl"}, {"message", "not a URL of a git repository"}}})}};
  return fail(std::move(error));
}

std::span<const Route> git_routes() {
  return kGitRoutes;
}

}  // namespace sandboxd::agent
