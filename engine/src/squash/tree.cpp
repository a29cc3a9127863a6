#include "sandboxd/squash/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "sandboxd/agent/fd.hpp"

namespace sandboxd::squash {
namespace {

using agent::UniqueFd;

/// What cannot be read is left out, or kept without its contents, and the rest is archived.
void warn(const std::string& path, const char* what) {
  const int number = errno;
  std::fprintf(stderr, "%s: %s, %s\n", path.c_str(), std::strerror(number), what);
}

Kind kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return Kind::directory;
    case S_IFLNK:
      return Kind::link;
    case S_IFBLK:
      return Kind::block_device;
    case S_IFCHR:
      return Kind::character_device;
    case S_IFIFO:
      return Kind::fifo;
    case S_IFSOCK:
      return Kind::socket;
    default:
      return Kind::file;
  }
}

std::uint32_t device_of(dev_t device) {
  const std::uint32_t high = major(device);
  const std::uint32_t low = minor(device);
  return (low & 0xFFU) | high << 8U | (low & ~0xFFU) << 12U;
}

/// Sorted: whoever reads the archive searches in them.
std::optional<std::vector<std::string>> names_in(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return std::nullopt;
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* item = ::readdir(directory.get())) {
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) warn(path, "leaving out the rest of it");
  std::ranges::sort(names);
  // One that is made anew meanwhile may come twice, and whoever reads the archive refuses it for that.
  const auto twice = std::ranges::unique(names);
  names.erase(twice.begin(), twice.end());
  return names;
}

}  // namespace

Outcome<std::uint16_t> Ids::index(std::uint32_t id) {
  const auto found = known_.find(id);
  if (found != known_.end()) return found->second;
  constexpr std::size_t kMost = 65535;
  if (known_.size() >= kMost) return tl::unexpected(std::string("more than 65535 owners and groups"));
  const auto index = static_cast<std::uint16_t>(known_.size());
  known_.emplace(id, index);
  put(table_, id);
  return index;
}

Outcome<Inode*> Tree::scan(std::string path) {
  Stat status{};
  if (::lstat(path.c_str(), &status) < 0) {
    return tl::unexpected(path + ": " + std::strerror(errno));
  }
  auto root = add(path, status, excludes_.root());
  if (root && *root == nullptr) return tl::unexpected(path + " cannot be read");
  return root;
}

Outcome<Inode*> Tree::add(const std::string& path, const Stat& status, const Excludes::State& state) {
  const bool linked = status.st_nlink > 1 && !S_ISDIR(status.st_mode);
  if (linked) {
    const auto known = linked_.find({status.st_dev, status.st_ino});
    if (known != linked_.end()) {
      ++known->second->links;
      return known->second;
    }
  }
  auto inode = make(path, status);
  if (!inode || *inode == nullptr) return inode;
  if (S_ISDIR(status.st_mode)) {
    auto read = read_directory(**inode, path, state);
    if (!read) return tl::unexpected(std::move(read.error()));
    if (!*read) {
      // Nothing was added below it: it is the last.
      inodes_.pop_back();
      return nullptr;
    }
  }
  if (linked) linked_.emplace(std::pair(status.st_dev, status.st_ino), *inode);
  return inode;
}

Outcome<Inode*> Tree::make(const std::string& path, const Stat& status) {
  Inode inode;
  inode.kind = kind_of(status.st_mode);
  inode.mode = static_cast<std::uint16_t>(status.st_mode & 07777U);
  inode.mtime = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(status.st_mtime, 0, std::numeric_limits<std::uint32_t>::max()));
  auto owner = ids.index(status.st_uid);
  auto group = ids.index(status.st_gid);
  if (!owner) return tl::unexpected(std::move(owner.error()));
  if (!group) return tl::unexpected(std::move(group.error()));
  inode.owner = *owner;
  inode.group = *group;
  inode.device = device_of(status.st_rdev);
  if (S_ISLNK(status.st_mode)) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size < 0) {
      warn(path, "ignoring it");
      return nullptr;
    }
    inode.target.assign(target.data(), static_cast<std::size_t>(size));
  }
  inode.xattrs = xattrs.read(path);
  if (S_ISREG(status.st_mode)) {
    if (auto read = read_file(inode, path); !read) return tl::unexpected(std::move(read.error()));
  }
  inode.number = count() + 1;
  return &inodes_.emplace_back(std::move(inode));
}

Outcome<void> Tree::read_file(Inode& inode, const std::string& path) {
  inode.data = std::make_shared<FileData>();
  // It may be something else by now, which must not be waited for.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  Stat status{};
  if (!fd || ::fstat(fd.get(), &status) < 0 || !S_ISREG(status.st_mode)) {
    warn(path, "keeping it empty");
    return {};
  }
  constexpr std::uint64_t kSector = 512;
  auto data = files_.pack(fd.get(), static_cast<std::uint64_t>(status.st_size),
                          static_cast<std::uint64_t>(status.st_blocks) * kSector);
  if (!data) return tl::unexpected(std::move(data.error()));
  if (*data == nullptr) {
    warn(path, "keeping it empty");
    return {};
  }
  inode.data = std::move(*data);
  return {};
}

Outcome<bool> Tree::read_directory(Inode& inode, const std::string& path, const Excludes::State& state) {
  const auto names = names_in(path);
  if (!names) {
    warn(path, "ignoring it");
    return false;
  }
  Excludes::State inside;
  for (const auto& name : *names) {
    if (excludes_.match(state, name, inside)) continue;
    const std::string below = path + "/" + name;
    Stat status{};
    if (::lstat(below.c_str(), &status) < 0) {
      warn(below, "ignoring it");
      continue;
    }
    auto entry = add(below, status, Excludes::State(inside));
    if (!entry) return tl::unexpected(std::move(entry.error()));
    if (*entry == nullptr) continue;
    if (S_ISDIR(status.st_mode)) ++inode.directories;
    inode.entries.push_back({name, *entry});
  }
  return true;
}

}  // namespace sandboxd::squash
