#include "sandboxes/environment.hpp"

#include <algorithm>

#include "sandboxes/identity.hpp"
#include "sandboxes/settings.hpp"
#include "sandboxes/strings.hpp"

namespace sandboxes {

namespace {

tl::unexpected<Error> refuse(std::string_view key, std::string reason) {
  return fail(InvalidEnv{std::string(key), std::move(reason)});
}

/// Bytes of a string as JSON text, at most: what JSON.stringify and our own printer may write.
std::int64_t json_bytes(std::string_view text) {
  std::int64_t bytes = 2;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    bytes += control ? 6 : c == '"' || c == '\\' ? 2 : 1;
  }
  return bytes;
}

std::int64_t json_bytes(const EnvChanges& changes) {
  std::int64_t bytes = 2;
  for (const auto& [key, value] : changes) bytes += json_bytes(key) + (value ? json_bytes(*value) : 4) + 2;
  return bytes;
}

Result<void> check_value(std::string_view key, std::string_view value) {
  if (value.find('\0') != std::string_view::npos) return refuse(key, "its value holds NUL");
  if (first_invalid_utf8(value)) return refuse(key, "its value is not UTF-8");
  return {};
}

Result<void> check_key(std::string_view key) {
  if (!is_env_key(key)) return refuse(key, "a name is a letter or '_' and then letters, digits or '_'");
  return {};
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

Result<void> check_line(std::string_view field, std::string_view text) {
  if (text.empty()) return fail(InvalidGitIdentity{std::string(field), "it is empty"});
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20 || text[i] == 0x7F) {
      return fail(InvalidGitIdentity{std::string(field), "it holds " + character_name(text, i)});
    }
  }
  return {};
}

/// A line of git's configuration file as a word of the shell.
std::string config_line(std::string_view key, std::string_view value) {
  std::string line = "\t" + std::string(key) + " = \"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') line.push_back('\\');
    line.push_back(letter);
  }
  return single_quoted(line + "\"");
}

}  // namespace

Result<MergedEnv> merge_env(const EnvMap& stored, const EnvChanges& changes, bool allow_raw_secrets) {
  MergedEnv merged{stored, changes};
  for (const auto& [key, value] : changes) {
    if (auto fine = check_key(key); !fine) return propagate(fine);
    if (!value) {
      merged.stored.erase(key);
      continue;
    }
    if (auto fine = check_value(key, *value); !fine) return propagate(fine);
    if (const auto kind = looks_like_secret(*value); kind && !allow_raw_secrets) {
      return fail(RawSecretRefused{key, std::string(*kind)});
    }
    merged.stored[key] = *value;
  }
  const EnvChanges whole(merged.stored.begin(), merged.stored.end());
  const std::pair<const char*, std::int64_t> sizes[] = {{"changes of variables", json_bytes(changes)},
                                                        {"whole environment", json_bytes(whole)}};
  for (const auto& [what, bytes] : sizes) {
    if (bytes > kMaxEnvBytes) return fail(EnvTooLarge{what, bytes, kMaxEnvBytes});
  }
  return merged;
}

Result<EnvMap> effective_env(const EnvLayers& layers) {
  EnvMap env;
  for (const EnvChanges* layer :
       {&layers.image, &layers.discovered, &layers.stored, &layers.session, &layers.command}) {
    for (const auto& [key, value] : *layer) {
      // What an image was built with is not ours to judge, as long as it can be an environment at all.
      const bool possible =
          !key.empty() && key.find_first_of(std::string_view("=\0", 2)) == std::string::npos;
      if (layer != &layers.image || !possible) {
        if (auto fine = check_key(key); !fine) return propagate(fine);
      }
      if (!value) {
        env.erase(key);
        continue;
      }
      if (auto fine = check_value(key, *value); !fine) return propagate(fine);
      env[key] = *value;
    }
  }
  return env;
}

std::optional<std::string> github_token_placeholder(const std::vector<Connection>& connections) {
  const auto path_of = [](const Connection& one) {
    return one.secret_path ? std::string(*one.secret_path)
                           : "/secrets/integrations/github/" + std::string(one.connection);
  };
  const Connection* first = nullptr;
  for (const Connection& one : connections) {
    const std::string path = path_of(one);
    const bool legal = one.connection.find_first_of("/\"'") == std::string_view::npos &&
                       path.find_first_of("\"'") == std::string::npos && check_secret_path(path).has_value();
    if (one.integration == "github" && legal && (first == nullptr || one.connection < first->connection))
      first = &one;
  }
  if (first == nullptr) return std::nullopt;
  return "getSecret(\"" + path_of(*first) + "\", { field: \"accessToken\" })";
}

Result<std::string> git_config_shell(const GitIdentity& identity) {
  const std::string_view name = identity.name.value_or(kDefaultGitName);
  const std::string_view email = identity.email.value_or(kDefaultGitEmail);
  if (auto fine = check_line("name", name); !fine) return propagate(fine);
  if (auto fine = check_line("email", email); !fine) return propagate(fine);
  const std::string set = "git config --global --replace-all ";
  std::string change =
      set + "user.name " + single_quoted(name) + " && " + set + "user.email " + single_quoted(email);
  std::string file = "'[user]' " + config_line("name", name) + " " + config_line("email", email);
  constexpr std::string_view kHeader = "http.https://github.com/.extraheader";
  if (identity.placeholder) {
    if (auto fine = check_line("token", *identity.placeholder); !fine) return propagate(fine);
    const std::string header =
        "AUTHORIZATION: basic " + base64_encode("x-access-token:" + std::string(*identity.placeholder));
    change += " && " + set + std::string(kHeader) + " " + single_quoted(header);
    file += " '[http \"https://github.com/\"]' " + config_line("extraheader", header);
  } else {
    // 5 is git's status for "was not set".
    change += " && { git config --global --unset-all " + std::string(kHeader) + " || [ $? -eq 5 ]; }";
  }
  // Each run of git takes as long as all the rest of a small sandbox's start: where there is no configuration
  // yet it is written.
  return "if [ -z \"${HOME-}\" ] || [ -n \"${GIT_CONFIG_GLOBAL-}\" ] || [ -e \"$HOME/.gitconfig\" ] || "
         "[ -e \"${XDG_CONFIG_HOME:-$HOME/.config}/git/config\" ]; then " +
         change + "; else printf '%s\\n' " + file + " > \"$HOME/.gitconfig\"; fi";
}

}  // namespace sandboxes
