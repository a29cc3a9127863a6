#include "sandboxd/rootfs.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "sandboxd/etc.hpp"

namespace sandboxd {
namespace {

constexpr std::array<Layer, 5> layers{
    {{"/usr", "usr"}, {"/opt", "opt"}, {"/etc", "etc"}, {"/var/lib/dpkg", "dpkg"}, {"/var/lib/apt", "apt"}}};
// Links of a merged /usr; a machine that has directories here gets overlays for them as well.
constexpr std::array<const char*, 6> merged{"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

struct Directory {
  const char* path;
  mode_t mode;
};
constexpr std::array<Directory, 27> directories{{
    {"usr", 0755},
    {"opt", 0755},
    {"etc", 0755},
    {"root", 0700},
    {"home", 0755},
    {"workspace", 0755},
    {"tmp", 01777},
    {"proc", 0555},
    {"sys", 0555},
    {"dev", 0755},
    {"run", 0755},
    {"run/lock", 01777},
    {"srv", 0755},
    {"mnt", 0755},
    {"media", 0755},
    {"boot", 0755},
    {"var", 0755},
    {"var/tmp", 01777},
    {"var/log", 0755},
    {"var/cache", 0755},
    {"var/cache/apt", 0755},
    {"var/cache/apt/archives", 0755},
    {"var/cache/debconf", 0755},
    {"var/lib", 0755},
    {"var/lib/dpkg", 0755},
    {"var/lib/apt", 0755},
    {"var/spool", 0755},
}};

std::string lower_of(const RootPlan& plan, const Layer& layer) {
  return layer.name == std::string_view("etc") ? plan.etc_template : layer.path;
}

bool present(const RootPlan& plan, const Layer& layer) {
  return is_directory(lower_of(plan, layer));
}

// The machine's files belong to root, who is nobody inside. A mount of their directory with ids mapped the
// container's way shows them as the container's own root. Not every file system can.
bool mount_mapped(const std::string& source, const std::string& target, int user_namespace) {
  const Fd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, source.c_str(),
                                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW)));
  if (!tree) return false;
  struct mount_attr attributes {};
  attributes.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
  attributes.userns_fd = static_cast<__u64>(user_namespace);
  if (::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return false;
  return ::syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

SysStatus bind_low(const std::string& source, const std::string& target) {
  if (auto made = make_directory(target, 0755); !made) return made;
  return mount_at(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr);
}

// Where an overlay finds its lower layer: by a place on the scratch, whose name says nothing about the
// machine.
SysResult<std::string> place_lower(const RootPlan& plan, const std::string& name, const std::string& source) {
  const std::string place = "low/" + name;
  if (plan.user_namespace >= 0) {
    if (auto made = make_directory(place, 0755); !made) return tl::make_unexpected(made.error());
    return mount_mapped(source, place, plan.user_namespace) ? place : source;
  }
  if (name == "etc") {
    if (auto done = bind_low(source, place); !done) return tl::make_unexpected(done.error());
    return place;
  }
  if (name != "usr" || plan.usr_skeleton.empty()) return source;
  if (auto done = bind_low(plan.usr_skeleton, "low/tree"); !done) return tl::make_unexpected(done.error());
  return "low/tree:" + source;
}

// Options hold relative paths: what the container can read in its mount table says nothing about the machine.
SysStatus mount_overlay(const RootPlan& plan, const Layer& layer) {
  const std::string name = layer.name;
  const auto lower = place_lower(plan, name, lower_of(plan, layer));
  if (!lower) return tl::make_unexpected(lower.error());
  std::string options = "lowerdir=" + *lower + ",upperdir=up/" + name + ",workdir=wk/" + name;
  options += plan.identity.privileged() ? ",redirect_dir=on,volatile" : ",userxattr,volatile";
  const std::string target = "root" + std::string(layer.path);
  return mount_at("overlay", target.c_str(), "overlay", MS_NODEV | MS_NOSUID | MS_NOATIME, options.c_str());
}

SysStatus bind_device(const std::string& name) {
  const std::string target = "dev/" + name;
  const Fd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return failed("open_failed", "create " + target);
  const std::string source = "/dev/" + name;
  return mount_at(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr);
}

SysStatus mount_dev(const RootPlan& plan) {
  if (auto done = mount_at("tmpfs", "dev", "tmpfs", MS_NOSUID, "mode=755,size=512k"); !done) return done;
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    if (auto done = bind_device(name); !done) return done;
  }
  for (const char* name : {"pts", "shm", "mqueue"}) {
    if (auto made = make_directory(std::string("dev/") + name, 0755); !made) return made;
  }
  const bool has_tty_group = plan.identity.count > 5;
  const char* options =
      has_tty_group ? "newinstance,ptmxmode=0666,mode=620,gid=5" : "newinstance,ptmxmode=0666,mode=620";
  if (auto done = mount_at("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options); !done) return done;
  std::uint64_t shared = std::uint64_t{64} << 20U;
  if (plan.config.limits.memory_bytes > 2 * shared) shared = plan.config.limits.memory_bytes / 2;
  const std::string size = "mode=1777,size=" + std::to_string(shared);
  if (auto done = mount_at("tmpfs", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()); !done)
    return done;
  for (const auto& [name, target] :
       {std::pair{"ptmx", "pts/ptmx"}, std::pair{"fd", "/proc/self/fd"},
        std::pair{"stdin", "/proc/self/fd/0"}, std::pair{"stdout", "/proc/self/fd/1"},
        std::pair{"stderr", "/proc/self/fd/2"}}) {
    if (auto made = make_link(target, std::string("dev/") + name); !made) return made;
  }
  return {};
}

SysStatus mount_proc() {
  if (auto done = mount_at("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr); !done) {
    return tl::make_unexpected(
        SystemError{"proc_refused",
                    "mount /proc (a parent container that masks parts of /proc forbids it: run it unmasked)",
                    done.error().number});
  }
  // What tells about the machine rather than about the container.
  for (const char* name :
       {"proc/kcore", "proc/keys", "proc/timer_list", "proc/sysrq-trigger", "proc/latency_stats"}) {
    if (exists(name)) (void)mount_at("/dev/null", name, nullptr, MS_BIND, nullptr);
  }
  return {};
}

// The databases of dpkg and apt as the container's own: locks and folders belong to the machine's root below,
// who may be nobody inside. The machine's overrides name its own accounts, and dpkg stops at one that it does
// not know.
SysStatus prepare_packages(Owner owner) {
  for (const char* path : {"dpkg/info", "dpkg/updates", "dpkg/triggers", "dpkg/alternatives", "dpkg/parts",
                           "apt/lists", "apt/lists/partial", "apt/periodic", "apt/mirrors"}) {
    if (auto made = make_directory(std::string("up/") + path, 0755, owner); !made) return made;
  }
  for (const char* path :
       {"dpkg/statoverride", "dpkg/lock", "dpkg/lock-frontend", "dpkg/triggers/Lock", "apt/lists/lock"}) {
    if (auto made = write_file(std::string("up/") + path, "", 0644, owner); !made) return made;
  }
  return {};
}

}  // namespace

SysStatus prepare_scratch(const RootPlan& plan) {
  const std::string& base = plan.scratch;
  const Owner owner = plan.identity.owner();
  if (::chdir(base.c_str()) != 0) return failed("chdir_failed", "enter " + base);
  for (const char* name : {"root", "up", "wk", "low"}) {
    const bool inside = name == std::string_view("root");
    if (auto made = make_directory(name, 0755, inside ? owner : Owner{}); !made) return made;
  }
  for (const auto& directory : directories) {
    if (auto made = make_directory(std::string("root/") + directory.path, directory.mode, owner); !made)
      return made;
  }
  for (const auto& [target, path] :
       {std::pair{"/run", "root/var/run"}, std::pair{"/run/lock", "root/var/lock"}}) {
    if (auto made = make_link(target, path, owner); !made) return made;
  }
  for (const char* name : merged) {
    std::array<char, 256> target{};
    const ssize_t length = ::readlink(("/" + std::string(name)).c_str(), target.data(), target.size() - 1);
    if (length <= 0) continue;
    if (auto made = make_link(target.data(), std::string("root/") + name, owner); !made) return made;
  }
  for (const auto& layer : layers) {
    for (const char* kind : {"up/", "wk/"}) {
      if (auto made = make_directory(kind + std::string(layer.name), 0755, owner); !made) return made;
    }
  }
  // The machine's may be nobody's inside, and the container's authority goes there.
  if (auto made = make_directories("up/usr", "local/share/ca-certificates", 0755, owner); !made) return made;
  if (auto made = prepare_packages(owner); !made) return made;
  return write_generated_etc("up/etc", owner);
}

SysStatus mount_layers(const RootPlan& plan) {
  if (::chdir(plan.scratch.c_str()) != 0) return failed("chdir_failed", "enter " + plan.scratch);
  for (const auto& layer : layers) {
    if (!present(plan, layer)) continue;
    if (auto done = mount_overlay(plan, layer); !done) return done;
  }
  return {};
}

SysStatus enter_root(const RootPlan& plan) {
  // A mount of its own at this place is what pivot_root wants; the layers below come along.
  if (auto done = mount_at("root", "root", nullptr, MS_BIND | MS_REC, nullptr); !done) return done;
  if (::chdir("root") != 0) return failed("chdir_failed", "enter " + plan.scratch + "/root");
  if (auto done = mount_proc(); !done) return done;
  if (auto done = mount_dev(plan); !done) return done;
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return failed("pivot_failed", "pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) return failed("umount_failed", "leave the old root");
  if (::chdir("/") != 0) return failed("chdir_failed", "enter /");
  return {};
}

}  // namespace sandboxd
