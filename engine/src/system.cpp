#include "sandboxd/system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

namespace sandboxd {

std::string SystemError::text() const {
  return number == 0 ? what : what + ": " + std::strerror(number);
}

tl::unexpected<SystemError> failed(std::string code, std::string what, int number) {
  return tl::make_unexpected(SystemError{std::move(code), std::move(what), number});
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

SysResult<std::string> read_all(int fd, std::size_t limit) {
  std::string text;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read_failed", "read");
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > limit) return failed("too_large", "more than " + std::to_string(limit) + " bytes", 0);
  }
}

SysResult<std::string> read_line(int fd, std::size_t limit) {
  std::string text;
  for (char byte = 0;;) {
    const ssize_t count = ::read(fd, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read_failed", "read");
    if (count == 0 || byte == '\n') return text;
    text += byte;
    if (text.size() > limit) return failed("too_large", "more than " + std::to_string(limit) + " bytes", 0);
  }
}

SysResult<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open_failed", "open " + path);
  return read_all(fd.get(), std::size_t{64} << 20);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

SysStatus poke(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return failed("open_failed", "open " + path);
  // One write: these files take a value whole.
  if (::write(fd.get(), text.data(), text.size()) < 0) return failed("write_failed", "write " + path);
  return {};
}

SysStatus write_file(const std::string& path, std::string_view text, mode_t mode, Owner owner) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return failed("open_failed", "create " + path);
  if (!write_all(fd.get(), text)) return failed("write_failed", "write " + path);
  if (::fchmod(fd.get(), mode) != 0) return failed("chmod_failed", "chmod " + path);
  if (owner.change && ::fchown(fd.get(), owner.uid, owner.gid) != 0)
    return failed("chown_failed", "chown " + path);
  return {};
}

SysStatus make_directory(const std::string& path, mode_t mode, Owner owner) {
  if (::mkdir(path.c_str(), mode) != 0) {
    if (errno == EEXIST) return {};
    return failed("mkdir_failed", "mkdir " + path);
  }
  // mkdir minds the umask; the inside must not.
  if (::chmod(path.c_str(), mode) != 0) return failed("chmod_failed", "chmod " + path);
  if (owner.change && ::lchown(path.c_str(), owner.uid, owner.gid) != 0)
    return failed("chown_failed", "chown " + path);
  return {};
}

SysStatus make_directories(const std::string& base, std::string_view relative, mode_t mode, Owner owner) {
  std::string path = base;
  while (!relative.empty()) {
    const auto slash = relative.find('/');
    const auto name = relative.substr(0, slash);
    relative = slash == std::string_view::npos ? std::string_view{} : relative.substr(slash + 1);
    if (name.empty()) continue;
    path.append("/").append(name);
    if (auto made = make_directory(path, mode, owner); !made) return made;
  }
  return {};
}

SysStatus make_link(const std::string& target, const std::string& path, Owner owner) {
  if (::symlink(target.c_str(), path.c_str()) != 0) {
    if (errno == EEXIST) return {};
    return failed("symlink_failed", "symlink " + path);
  }
  if (owner.change && ::lchown(path.c_str(), owner.uid, owner.gid) != 0)
    return failed("chown_failed", "chown " + path);
  return {};
}

SysStatus mount_at(const char* source, const char* target, const char* type, unsigned long flags,
                   const char* data) {
  if (::mount(source, target, type, flags, data) != 0) {
    return failed("mount_failed",
                  std::string("mount ") + (type != nullptr ? type : "bind") + " on " + target);
  }
  return {};
}

bool exists(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

namespace {

// Directories are opened one inside the other, never by a path that somebody could have swapped meanwhile.
bool remove_entries(int parent, dev_t device) {
  DIR* directory = ::fdopendir(parent);
  if (directory == nullptr) {
    ::close(parent);
    return false;
  }
  bool clean = true;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    const int here = ::dirfd(directory);
    if (::fstatat(here, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(info.st_mode)) {
      clean = ::unlinkat(here, entry->d_name, 0) == 0 && clean;
      continue;
    }
    if (info.st_dev != device) {
      clean = false;
      continue;
    }
    // The overlay's work directory has mode 0.
    if ((info.st_mode & S_IRWXU) != S_IRWXU) (void)::fchmodat(here, entry->d_name, S_IRWXU, 0);
    const int child = ::openat(here, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child >= 0) clean = remove_entries(child, device) && clean;
    clean = ::unlinkat(here, entry->d_name, AT_REMOVEDIR) == 0 && clean;
  }
  ::closedir(directory);
  return clean;
}

std::uint64_t entries_bytes(int parent, dev_t device) {
  DIR* directory = ::fdopendir(parent);
  if (directory == nullptr) {
    ::close(parent);
    return 0;
  }
  std::uint64_t bytes = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    const int here = ::dirfd(directory);
    if (::fstatat(here, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (info.st_dev != device) continue;
    bytes += static_cast<std::uint64_t>(info.st_blocks) * 512U;
    if (!S_ISDIR(info.st_mode)) continue;
    const int child = ::openat(here, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child >= 0) bytes += entries_bytes(child, device);
  }
  ::closedir(directory);
  return bytes;
}

}  // namespace

bool remove_tree(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ::unlink(path.c_str()) == 0 || errno == ENOENT;
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    ::close(fd);
    return false;
  }
  const bool clean = remove_entries(fd, info.st_dev);
  return ::rmdir(path.c_str()) == 0 && clean;
}

std::uint64_t tree_bytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    ::close(fd);
    return 0;
  }
  return entries_bytes(fd, info.st_dev);
}

int run_program(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const auto& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return 127;
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    if (null >= 0) {
      ::dup2(null, 0);
      ::dup2(null, 1);
      ::dup2(null, 2);
    }
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool follow_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == parent;
}

void raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

SysResult<Fd> listen_privately(const std::string& path, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return failed("runtime_dir_refused", "bind " + name, ENAMETOOLONG);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("socket_failed", "make a socket for " + name);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed("runtime_dir_refused", "remove an old " + name);
  }
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0) return failed("runtime_dir_refused", "bind " + name);
  if (::listen(socket.get(), SOMAXCONN) != 0) return failed("listen_failed", "listen on " + name);
  return socket;
}

namespace {
constexpr std::size_t max_descriptors = 16;
constexpr std::size_t control_bytes = CMSG_SPACE(max_descriptors * sizeof(int));
}  // namespace

SysStatus send_message(int socket, std::string_view text, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  if (!descriptors.empty() && descriptors.size() <= max_descriptors) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* ancillary = CMSG_FIRSTHDR(&header);
    ancillary->cmsg_level = SOL_SOCKET;
    ancillary->cmsg_type = SCM_RIGHTS;
    ancillary->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(ancillary), descriptors.data(), bytes);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return failed("send_failed", "sendmsg between launcher and container");
  return {};
}

SysResult<Message> receive_message(int socket) {
  Message message;
  message.text.resize(65536);
  iovec part{message.text.data(), message.text.size()};
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return failed("receive_failed", "recvmsg between launcher and container");
  message.text.resize(static_cast<std::size_t>(count));
  for (cmsghdr* ancillary = CMSG_FIRSTHDR(&header); ancillary != nullptr;
       ancillary = CMSG_NXTHDR(&header, ancillary)) {
    if (ancillary->cmsg_level != SOL_SOCKET || ancillary->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = ancillary->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(ancillary) + at, sizeof fd);
      message.descriptors.emplace_back(fd);
    }
  }
  return message;
}

}  // namespace sandboxd
