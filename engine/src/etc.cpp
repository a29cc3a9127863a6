#include "sandboxd/etc.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace sandboxd {
namespace {

std::string below(const std::string& folder, const std::string& name) {
  std::string path = folder;
  return path.append("/").append(name);
}

// What programs need to run and to be installed. Nothing that holds accounts, secrets or the machine's
// network.
constexpr std::array<std::string_view, 52> chosen{"X11",
                                                  "adduser.conf",
                                                  "alternatives",
                                                  "apt",
                                                  "bash.bashrc",
                                                  "bash_completion.d",
                                                  "bindresvport.blacklist",
                                                  "ca-certificates",
                                                  "ca-certificates.conf",
                                                  "debconf.conf",
                                                  "debian_version",
                                                  "default",
                                                  "deluser.conf",
                                                  "dpkg",
                                                  "emacs",
                                                  "environment.d",
                                                  "ethertypes",
                                                  "fonts",
                                                  "gai.conf",
                                                  "gdb",
                                                  "groff",
                                                  "host.conf",
                                                  "inputrc",
                                                  "issue",
                                                  "issue.net",
                                                  "java-17-openjdk",
                                                  "ld.so.cache",
                                                  "ld.so.conf",
                                                  "ld.so.conf.d",
                                                  "locale.alias",
                                                  "locale.gen",
                                                  "localtime",
                                                  "login.defs",
                                                  "magic",
                                                  "magic.mime",
                                                  "manpath.config",
                                                  "mime.types",
                                                  "netconfig",
                                                  "networks",
                                                  "os-release",
                                                  "pam.conf",
                                                  "pam.d",
                                                  "perl",
                                                  "profile",
                                                  "profile.d",
                                                  "protocols",
                                                  "python3",
                                                  "python3.11",
                                                  "rpc",
                                                  "services",
                                                  "skel",
                                                  "terminfo"};
constexpr std::array<std::string_view, 6> chosen_more{"timezone", "vim", "wgetrc", "xdg", "ssl", "security"};

// Parts of the chosen that stay outside.
bool withheld(std::string_view relative) {
  constexpr std::array<std::string_view, 4> prefixes{"ssl/private", "apt/auth.conf", "apt/keyrings/private",
                                                     "apt/apt.conf.d/proxy"};
  for (const auto prefix : prefixes) {
    if (relative.substr(0, prefix.size()) == prefix) return true;
  }
  const auto ends = [&](std::string_view tail) {
    return relative.size() > tail.size() && relative.substr(relative.size() - tail.size()) == tail;
  };
  return ends(".key") || ends(".p12") || ends(".pfx");
}

bool copy_file(const std::string& from, const std::string& to, mode_t mode) {
  const auto text = read_file(from);
  return text && write_file(to, *text, mode).has_value();
}

// Unreadable entries are left out: an ordinary user copies what an ordinary user may read.
void copy_entry(const std::string& from, const std::string& to, const std::string& relative) {
  struct stat info;
  if (withheld(relative) || ::lstat(from.c_str(), &info) != 0) return;
  if (S_ISLNK(info.st_mode)) {
    std::array<char, 4096> target{};
    const ssize_t length = ::readlink(from.c_str(), target.data(), target.size() - 1);
    if (length > 0) (void)make_link(std::string(target.data(), static_cast<std::size_t>(length)), to);
    return;
  }
  if (S_ISREG(info.st_mode)) {
    // World-readable only: whatever is kept from other users of the machine is kept from containers too.
    if ((info.st_mode & S_IROTH) != 0 && info.st_size < (16 << 20))
      (void)copy_file(from, to, info.st_mode & 0777);
    return;
  }
  if (!S_ISDIR(info.st_mode) || (info.st_mode & S_IROTH) == 0) return;
  if (!make_directory(to, 0755)) return;
  DIR* directory = ::opendir(from.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") copy_entry(below(from, name), below(to, name), below(relative, name));
  }
  ::closedir(directory);
}

void mix(std::uint64_t& hash, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash ^= (value >> shift) & 0xffU;
    hash *= 0x100000001b3ULL;
  }
}

void mix_file(std::uint64_t& hash, const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return;
  mix(hash, info.st_ino);
  mix(hash, static_cast<std::uint64_t>(info.st_mtim.tv_sec));
  mix(hash, static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
}

constexpr std::uint64_t hash_start = 0xcbf29ce484222325ULL;

std::string hex(std::uint64_t value) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15U];
  return text;
}

// Made beside its final place and renamed, so that a half-made one is never used and two launches cannot
// collide.
template <class Fill>
SysResult<std::string> cached_directory(const std::string& cache_dir, const std::string& name, Fill fill) {
  if (cache_dir.empty()) return failed("no_cache", "no cache directory: set cacheDir or HOME", 0);
  const std::string path = cache_dir + "/" + name;
  if (is_directory(path)) return path;
  if (auto made = make_directories("/", cache_dir, 0755); !made) return tl::make_unexpected(made.error());
  const std::string draft = path + "." + std::to_string(::getpid());
  if (auto made = make_directory(draft, 0755); !made) return tl::make_unexpected(made.error());
  fill(draft);
  if (::rename(draft.c_str(), path.c_str()) != 0) {
    const int number = errno;
    remove_tree(draft);
    if (!is_directory(path)) return failed("rename_failed", "rename " + draft, number);
  }
  return path;
}

void copy_directories(const std::string& from, const std::string& to) {
  DIR* directory = ::opendir(from.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    if (make_directory(below(to, name), 0755)) copy_directories(below(from, name), below(to, name));
  }
  ::closedir(directory);
}

constexpr const char* bundle_name = "ssl/certs/ca-certificates.crt";

constexpr std::string_view passwd_file =
    "root:x:0:0:root:/root:/bin/bash\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
    "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
    "sync:x:4:65534:sync:/bin:/bin/sync\n"
    "games:x:5:60:games:/usr/games:/usr/sbin/nologin\n"
    "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
    "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
    "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    "backup:x:34:34:backup:/var/backups:/usr/sbin/nologin\n"
    "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
constexpr std::string_view group_file =
    "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nman:x:12:\nkmem:x:15:\nmail:"
    "x:8:\n"
    "sudo:x:27:\naudio:x:29:\nwww-data:x:33:\nbackup:x:34:\nshadow:x:42:\nutmp:x:43:\nvideo:x:44:\nstaff:x:"
    "50:\n"
    "games:x:60:\nusers:x:100:\nnogroup:x:65534:\n";

std::string shadow_file() {
  std::string text;
  std::string_view rest = passwd_file;
  while (!rest.empty()) {
    text.append(rest.substr(0, rest.find(':'))).append(":*:19000:0:99999:7:::\n");
    rest.remove_prefix(rest.find('\n') + 1);
  }
  return text;
}

}  // namespace

SysResult<std::string> etc_template(const std::string& cache_dir) {
  std::uint64_t hash = hash_start;
  for (const auto name : chosen) mix_file(hash, "/etc/" + std::string(name));
  for (const auto name : chosen_more) mix_file(hash, "/etc/" + std::string(name));
  for (const char* deeper :
       {"/etc/ssl/certs", "/etc/ssl/certs/ca-certificates.crt", "/etc/apt/sources.list.d"}) {
    mix_file(hash, deeper);
  }
  return cached_directory(cache_dir, "etc-" + hex(hash), [](const std::string& draft) {
    const auto copy = [&](std::string_view name) {
      const std::string text(name);
      copy_entry("/etc/" + text, draft + "/" + text, text);
    };
    for (const auto name : chosen) copy(name);
    for (const auto name : chosen_more) copy(name);
  });
}

SysStatus write_generated_etc(const std::string& upper, Owner owner) {
  const struct {
    const char* name;
    std::string text;
    mode_t mode;
  } files[] = {
      {"passwd", std::string(passwd_file), 0644},
      {"group", std::string(group_file), 0644},
      {"shadow", shadow_file(), 0640},
      {"gshadow", "", 0640},
      {"subuid", "", 0644},
      {"subgid", "", 0644},
      {"resolv.conf", "nameserver 127.0.0.53\n", 0644},
      {"nsswitch.conf",
       "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\n"
       "services: files\nethers: files\nrpc: files\n",
       0644},
      {"environment", "PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n", 0644},
      {"shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n/bin/dash\n", 0644},
  };
  for (const auto& file : files) {
    if (auto made = write_file(upper + "/" + file.name, file.text, file.mode, owner); !made) return made;
  }
  if (auto made = make_link("/proc/self/mounts", upper + "/mtab", owner); !made) return made;
  if (auto made = make_directories(upper, "ssl/certs", 0755, owner); !made) return made;
  // A copy that only has to grow by whom a start adds to it.
  auto bundle = read_file("/etc/" + std::string(bundle_name)).value_or(std::string());
  if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
  return write_file(upper + "/" + bundle_name, bundle, 0644, owner);
}

SysStatus write_own_etc(const StartConfig& config) {
  const std::string& host = config.hostname;
  if (auto made = write_file("/etc/hostname", host + "\n", 0644); !made) return made;
  const std::string hosts = "127.0.0.1 localhost " + host + "\n::1 localhost ip6-localhost ip6-loopback\n";
  if (auto made = write_file("/etc/hosts", hosts, 0644); !made) return made;
  const std::string& ca = config.ca_certificate_pem;
  if (ca.empty()) return {};
  // The second is so that update-ca-certificates, which a package may run, keeps it.
  for (const auto& [base, folder] :
       {std::pair{"/etc", "cloudflare/certs"}, std::pair{"/usr", "local/share/ca-certificates"}}) {
    if (auto made = make_directories(base, folder, 0755); !made) return made;
    const std::string path = std::string(base) + "/" + folder + "/cloudflare-containers-ca.crt";
    if (auto made = write_file(path, ca, 0644); !made) return made;
  }
  const std::string path = "/etc/" + std::string(bundle_name);
  const Fd bundle(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!bundle) return failed("open_failed", "open " + path);
  const bool whole = write_all(bundle.get(), ca.back() == '\n' ? ca : ca + "\n");
  if (!whole) return failed("write_failed", "write " + path);
  return {};
}

SysResult<std::string> directory_skeleton(const std::string& cache_dir, const std::string& source,
                                          const std::string& name) {
  std::uint64_t hash = hash_start;
  for (const auto& path :
       {source, source + "/lib", source + "/share", source + "/local", source + "/local/lib",
        source + "/lib/node_modules", std::string("/var/lib/dpkg/status")}) {
    mix_file(hash, path);
  }
  return cached_directory(cache_dir, "tree-" + name + "-" + hex(hash),
                          [&](const std::string& draft) { copy_directories(source, draft); });
}

}  // namespace sandboxd
