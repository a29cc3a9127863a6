#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "sandboxd/agent/child.hpp"
#include "sandboxd/agent/session.hpp"
#include "sandboxd/agent/session_script.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+,:@%";

/// Whether it is done. What fails is left to the program of that name, which says why.
bool done_here(const std::vector<std::string>& words) {
  if (words.size() != 3 || !words[2].starts_with('/')) return false;
  std::error_code error;
  if (words[0] == "mkdir" && words[1] == "-p") {
    std::filesystem::create_directories(words[2], error);
    return std::filesystem::is_directory(words[2], error);
  }
  if (words[0] == "rm" && words[1] == "-f") {
    return ::unlink(words[2].c_str()) == 0 || errno == ENOENT;
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> plain_words(std::string_view command) {
  std::vector<std::string> words;
  while (!command.empty()) {
    if (command.front() == ' ') {
      command.remove_prefix(1);
      continue;
    }
    std::string word;
    while (!command.empty() && command.front() != ' ') {
      if (command.front() == '\'') {
        const std::size_t end = command.find('\'', 1);
        if (end == std::string_view::npos) return std::nullopt;
        word += command.substr(1, end - 1);
        command.remove_prefix(end + 1);
        continue;
      }
      if (kPlain.find(command.front()) == std::string_view::npos) return std::nullopt;
      word += command.front();
      command.remove_prefix(1);
    }
    words.push_back(std::move(word));
  }
  return words;
}

Task<std::optional<Result<CommandResult>>> Session::without_shell(const ExecRequest& request,
                                                                  Cancellation& cancellation) {
  auto words = plain_words(request.command);
  if (!words || words->empty() || request.cwd || !request.env.empty()) co_return std::nullopt;
  auto doing = runtime_.offload([words = *words] { return done_here(words); });
  if (co_await std::move(doing)) co_return CommandResult{};
  if (!words->front().starts_with('/')) co_return std::nullopt;
  SpawnRequest spawned;
  spawned.argv = std::move(*words);
  spawned.env = env_list(known_env_);
  spawned.cwd = cwd();
  spawned.service = true;
  auto child = Child::start(runtime_, std::move(spawned));
  if (!child) co_return std::nullopt;
  direct_ = *child;
  CommandLimits limits;
  limits.timeout = request.timeout;
  auto result = co_await (*child)->collect(limits, &cancellation, request.command);
  if (destroyed_) co_return fail(destroyed_error());
  co_return std::move(result);
}

}  // namespace sandboxd::agent
