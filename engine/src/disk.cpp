#include "sandboxd/disk.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

namespace sandboxd {
namespace {

// Copies only the parts of a sparse file that hold data, which is what makes a fresh file system cheap.
bool copy_sparse(int from, int to, off_t size) {
  if (::ftruncate(to, size) != 0) return false;
  off_t at = 0;
  while (at < size) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO;
    const off_t hole = ::lseek(from, data, SEEK_HOLE);
    if (hole < 0) return false;
    off_t target = data;
    while (data < hole) {
      const ssize_t count =
          ::copy_file_range(from, &data, to, &target, static_cast<std::size_t>(hole - data), 0);
      if (count <= 0) return false;
    }
    at = hole;
  }
  return true;
}

// Half of the image is a reserve that only the agent and its archives may touch: a disk that commands have
// filled must not keep /workspace from being saved, and an archive is at most as large as what it holds. The
// image is sparse, so that the reserve costs nothing until then.
constexpr std::uint64_t image_parts = 2;

// An empty file system of a size is made once and kept; making one takes longer than a whole launch may.
SysResult<Fd> open_template(const std::string& cache_dir, std::uint64_t bytes) {
  if (cache_dir.empty()) return failed("no_cache", "no directory for the file system template", 0);
  const std::string path = cache_dir + "/ext4-reserve-" + std::to_string(bytes);
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  if (auto made = make_directories("/", cache_dir, 0755); !made) return tl::make_unexpected(made.error());
  const std::string draft = path + "." + std::to_string(::getpid());
  {
    const Fd file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
      return failed("no_space", "create " + draft);
  }
  const int status =
      run_program({"mkfs.ext4", "-q", "-F", "-m", "50", "-i", "16384", "-O",
                   "^has_journal,^resize_inode,sparse_super2", "-E", "lazy_itable_init=1,nodiscard", draft});
  if (status != 0) {
    ::unlink(draft.c_str());
    return failed("mkfs_failed", "mkfs.ext4 (package e2fsprogs) gave status " + std::to_string(status), 0);
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return failed("rename_failed", "rename " + draft);
  fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open_failed", "open " + path);
  return fd;
}

struct Loop {
  Fd device;
  std::string path;
};

SysResult<Loop> attach_loop(int image) {
  const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) return failed("no_loop", "open /dev/loop-control");
  loop_config config{};
  config.fd = static_cast<__u32>(image);
  config.block_size = 4096;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  // Another launch may take the free number first.
  for (int attempt = 0; attempt < 64; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return failed("no_loop", "ask for a loop device");
    Loop loop;
    loop.path = "/dev/loop" + std::to_string(number);
    loop.device = Fd(::open(loop.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!loop.device) return failed("no_loop", "open " + loop.path);
    if (::ioctl(loop.device.get(), LOOP_CONFIGURE, &config) == 0) return loop;
    if (errno != EBUSY) return failed("no_loop", "configure " + loop.path);
  }
  return failed("no_loop", "every free loop device was taken by somebody else", 0);
}

SysStatus mount_image(const std::string& upper_dir, const std::string& target, const std::string& cache_dir,
                      std::uint64_t bytes) {
  auto source = open_template(cache_dir, bytes);
  if (!source) return tl::make_unexpected(source.error());
  const std::string path = upper_dir + "/disk.img";
  const Fd image(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!image) return failed("open_failed", "create " + path);
  ::unlink(path.c_str());
  if (!copy_sparse(source->get(), image.get(), static_cast<off_t>(bytes)))
    return failed("copy_failed", "copy to " + path);
  auto loop = attach_loop(image.get());
  if (!loop) return tl::make_unexpected(loop.error());
  // By default root has the reserve, and so has everybody who writes through an overlay that root has
  // mounted.
  const auto owner = std::to_string(reserve_gid);
  const std::string options = "noinit_itable,barrier=0,resuid=" + owner + ",resgid=" + owner;
  return mount_at(loop->path.c_str(), target.c_str(), "ext4", MS_NOATIME | MS_NODEV | MS_NOSUID,
                  options.c_str());
}

}  // namespace

std::string scratch_path(const std::string& upper_dir) {
  return upper_dir + "/fs";
}

SysResult<Scratch> make_scratch(const std::string& upper_dir, const std::string& cache_dir,
                                std::uint64_t disk_bytes, const IdentityPlan& identity) {
  Scratch scratch{scratch_path(upper_dir), false};
  if (exists(scratch.path) && !remove_tree(scratch.path)) {
    return failed("scratch_in_use", scratch.path + " is left from another container and cannot be removed",
                  0);
  }
  if (auto made = make_directory(scratch.path, 0755); !made) return tl::make_unexpected(made.error());
  constexpr std::uint64_t smallest = 16U << 20U;
  if (identity.privileged() && disk_bytes >= smallest) {
    const std::uint64_t whole = disk_bytes / 4096 * 4096;
    // Without loop devices or mkfs.ext4 the limit is watched instead.
    scratch.enforced = mount_image(upper_dir, scratch.path, cache_dir, whole * image_parts).has_value();
  }
  return scratch;
}

}  // namespace sandboxd
