#include "sandboxd/doctor.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sandboxd/cgroup.hpp"
#include "sandboxd/identity.hpp"
#include "sandboxd/network.hpp"

namespace sandboxd {
namespace {

using Json = nlohmann::json;

struct Finding {
  std::string name;
  bool ok;
  bool needed;
  std::string detail;
  std::string advice;
};

// Tries something in a child with namespaces of its own. 0 is success, anything else an errno.
template <class Work>
int try_in_child(unsigned long flags, Work work) {
  const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(static_cast<pid_t>(pid), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

std::string sysctl(const char* name) {
  auto text = read_file(std::string("/proc/sys/") + name).value_or(std::string());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string userns_advice() {
  if (sysctl("kernel/unprivileged_userns_clone") == "0")
    return "sysctl -w kernel.unprivileged_userns_clone=1";
  if (sysctl("user/max_user_namespaces") == "0") return "sysctl -w user.max_user_namespaces=15000";
  if (sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  return "allow user namespaces (a surrounding container must permit clone, unshare and mount: run it "
         "privileged)";
}

std::string error_text(int number) {
  return number == 0 ? std::string() : SystemError{"", "refused", number}.text();
}

Finding check_namespaces() {
  const int error =
      try_in_child(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
                   [] { return 0; });
  return {"namespaces", error == 0, true, error_text(error), error == 0 ? "" : userns_advice()};
}

// Own ids only, which is what anybody may map.
bool map_self(uid_t uid, gid_t gid) {
  return poke("/proc/self/setgroups", "deny") &&
         poke("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1") &&
         poke("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
}

Finding check_overlay() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const int error = try_in_child(CLONE_NEWUSER | CLONE_NEWNS, [uid, gid] {
    if (!map_self(uid, gid)) return errno;
    if (::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) return errno;
    for (const char* name : {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"}) {
      if (!make_directory(name, 0755)) return errno;
    }
    const char* options = "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr";
    return ::mount("overlay", "/tmp/merged", "overlay", 0, options) == 0 ? 0 : errno;
  });
  return {"overlay", error == 0, true, error_text(error),
          error == 0 ? "" : "a kernel of 5.11 or newer with overlayfs (modprobe overlay)"};
}

Finding check_network() {
  const int error = try_in_child(CLONE_NEWUSER | CLONE_NEWNET, [] {
    const auto done = set_up_network();
    return done ? 0 : done.error().number == 0 ? EINVAL : done.error().number;
  });
  return {
      "network_rules", error == 0, true, error_text(error),
      error == 0
          ? ""
          : "a kernel with nf_tables and nat (modprobe nf_tables nft_chain_nat nft_redir nft_reject_inet)"};
}

Finding check_ids() {
  const auto plan = plan_identity(::getpid());
  switch (plan.kind) {
    case IdentityPlan::Kind::root_range:
      return {"ids", true, false, "a range of its own for each container", ""};
    case IdentityPlan::Kind::user_range:
      return {"ids", true, false, "the range of /etc/subuid and /etc/subgid", ""};
    case IdentityPlan::Kind::single:
      break;
  }
  return {"ids", false, false, "one id only: apt-get and programs that change user do not work inside",
          "apt-get install uidmap, and lines for this user in /etc/subuid and /etc/subgid"};
}

Finding check_group(const char* name, const ControllerPlace& place, const char* otherwise) {
  const bool ok = !place.parent.empty();
  const std::string version = place.unified ? "control group version 2" : "control group version 1";
  return {name, ok, false, ok ? version : otherwise,
          ok ? "" : "run as root, or in a systemd user session with delegated controllers"};
}

Finding check_disk() {
  const bool root = ::geteuid() == 0;
  const bool loop = root && ::access("/dev/loop-control", R_OK | W_OK) == 0;
  const bool mkfs = run_program({"mkfs.ext4", "-V"}) == 0;
  std::string advice;
  if (!root) advice = "run as root for a file system of its own";
  if (root && !loop) advice = "give access to /dev/loop-control and loop devices (modprobe loop)";
  if (root && loop && !mkfs) advice = "apt-get install e2fsprogs";
  const bool ok = loop && mkfs;
  return {"disk_limit", ok, false,
          ok ? "a file system of its own" : "watched: the container is ended when over", advice};
}

Finding check_program(const char* program, const char* package, const char* use) {
  const bool ok = run_program({"sh", "-c", std::string("command -v ") + program}) == 0;
  return {program, ok, false, use, ok ? "" : std::string("apt-get install ") + package};
}

}  // namespace

int doctor(bool json) {
  const auto places = find_controllers();
  const Finding findings[] = {
      check_namespaces(),
      check_overlay(),
      check_network(),
      check_ids(),
      check_group("memory_limit", places.memory, "a limit for each process, not for all together"),
      check_group("process_limit", places.pids, "a limit by user"),
      check_group("cpu_limit", places.cpu, "none"),
      check_disk(),
      check_program("mksquashfs", "squashfs-tools", "backups"),
      check_program("bash", "bash", "sessions"),
      check_program("git", "git", "gitCheckout"),
  };
  bool works = true;
  Json document{{"findings", Json::array()}};
  for (const auto& finding : findings) {
    works = works && (finding.ok || !finding.needed);
    document["findings"].push_back({{"name", finding.name},
                                    {"ok", finding.ok},
                                    {"required", finding.needed},
                                    {"detail", finding.detail},
                                    {"advice", finding.advice}});
    if (json) continue;
    std::printf("%-8s%-16s%s%s%s\n",
                finding.ok       ? "ok"
                : finding.needed ? "MISSING"
                                 : "without",
                finding.name.c_str(), finding.detail.c_str(), finding.advice.empty() ? "" : " -> ",
                finding.advice.c_str());
  }
  document["ok"] = works;
  document["user"] = ::geteuid() == 0 ? "root" : "ordinary";
  if (json) std::printf("%s\n", document.dump().c_str());
  return works ? 0 : 1;
}

}  // namespace sandboxd
