// What every part of sandboxd uses of the kernel: descriptors that close themselves, and errors that are
// values.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sandboxd {

/// A step that the kernel (or the configuration) refused: a stable code, what was tried, and errno (0 if
/// none).
struct SystemError {
  std::string code;
  std::string what;
  int number = 0;

  [[nodiscard]] std::string text() const;
};

template <class T>
using SysResult = tl::expected<T, SystemError>;
using SysStatus = SysResult<void>;

/// The error of the system call that has just failed.
[[nodiscard]] tl::unexpected<SystemError> failed(std::string code, std::string what, int number = errno);

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// Who owns what is made for the inside, as ids outside; nobody in particular when it is the caller itself.
struct Owner {
  bool change = false;
  uid_t uid = 0;
  gid_t gid = 0;
};

[[nodiscard]] SysResult<std::string> read_file(const std::string& path);
/// Reads a descriptor to its end, at most `limit` bytes.
[[nodiscard]] SysResult<std::string> read_all(int fd, std::size_t limit);
/// Reads a descriptor up to the end of a line, which is left out, and nothing of what follows; at most
/// `limit` bytes.
[[nodiscard]] SysResult<std::string> read_line(int fd, std::size_t limit);
/// Writes to a file that exists already (cgroup and proc files).
[[nodiscard]] SysStatus poke(const std::string& path, std::string_view text);
/// Creates or replaces a regular file.
[[nodiscard]] SysStatus write_file(const std::string& path, std::string_view text, mode_t mode,
                                   Owner owner = {});
/// Makes one directory; one that exists is fine.
[[nodiscard]] SysStatus make_directory(const std::string& path, mode_t mode, Owner owner = {});
/// Makes a directory and those above it that are missing, below `base`, which exists.
[[nodiscard]] SysStatus make_directories(const std::string& base, std::string_view relative, mode_t mode,
                                         Owner owner = {});
[[nodiscard]] SysStatus make_link(const std::string& target, const std::string& path, Owner owner = {});
[[nodiscard]] SysStatus mount_at(const char* source, const char* target, const char* type,
                                 unsigned long flags, const char* data);
[[nodiscard]] bool exists(const std::string& path);
[[nodiscard]] bool is_directory(const std::string& path);
/// Removes a tree without following links or leaving its file system. Returns false when something is left.
bool remove_tree(const std::string& path);
/// Bytes that a tree takes on disk.
[[nodiscard]] std::uint64_t tree_bytes(const std::string& path);
/// Runs a program and waits for it; its output is dropped. The exit status, or 127.
[[nodiscard]] int run_program(const std::vector<std::string>& argv);
/// The whole text goes to a descriptor, or false.
bool write_all(int fd, std::string_view text);

/// From here on this process is killed when `parent`, which started it, ends. False when that has happened
/// already.
[[nodiscard]] bool follow_parent(pid_t parent);
/// As many open files as this process may have at all.
void raise_file_limit();
/// A Unix socket that listens at `path`, in place of an old one, for this user alone. `name` is for errors.
[[nodiscard]] SysResult<Fd> listen_privately(const std::string& path, const std::string& name);

/// Sends a message with descriptors over a Unix socket pair.
[[nodiscard]] SysStatus send_message(int socket, std::string_view text,
                                     const std::vector<int>& descriptors = {});
struct Message {
  std::string text;
  std::vector<Fd> descriptors;
};
/// Receives one message; an empty text means that the other side is gone.
[[nodiscard]] SysResult<Message> receive_message(int socket);

}  // namespace sandboxd
