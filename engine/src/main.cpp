// sandboxd: one container's launcher, first process, agent and relay in one binary, and what starts
// launchers.

#include <cstdio>
#include <span>
#include <string_view>

#include "sandboxd/doctor.hpp"
#include "sandboxd/launcher.hpp"
#include "sandboxd/spawner.hpp"
#include "sandboxd/squash/squash.hpp"

namespace {

constexpr std::string_view usage =
    "usage: sandboxd launch            prepare a container from a line of JSON on standard input, start it "
    "from\n"
    "                                  the second line, stay until it ends\n"
    "       sandboxd spawn SOCKET      start launchers for whoever connects, until standard input ends\n"
    "       sandboxd doctor [--json]   say what this machine offers and what to install or set\n"
    "       sandboxd sweep DIR...      remove the scratch of containers whose launcher was killed\n"
    "       sandboxd squash DIR ARCHIVE EXCLUDES THREADS   archive a directory as squashfs\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "launch" && argc == 2) return sandboxd::launch();
  if (role == "spawn" && argc == 3) return sandboxd::spawn_launchers(argv[0], argv[2]);
  if (role == "doctor") return sandboxd::doctor(argc > 2 && std::string_view(argv[2]) == "--json");
  if (role == "squash") return sandboxd::squash::squash(std::span(argv + 2, argv + argc));
  if (role == "sweep" && argc > 2) return sandboxd::sweep(argc - 2, argv + 2);
  std::fwrite(usage.data(), 1, usage.size(), stderr);
  return 2;
}
