#include "sandboxd/agent/watch.hpp"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sandboxd/agent/text.hpp"

namespace sandboxd::agent {
namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
                                IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::size_t kMostEvents = 100000;
constexpr std::size_t kMostRetained = 64;

struct MaskRow {
  std::uint32_t bit;
  const char* type;
};
constexpr std::array kTypes = {
    MaskRow{IN_CREATE, "create"},        MaskRow{IN_MODIFY, "modify"},    MaskRow{IN_DELETE, "delete"},
    MaskRow{IN_MOVED_FROM, "move_from"}, MaskRow{IN_MOVED_TO, "move_to"}, MaskRow{IN_ATTRIB, "attrib"},
};

/// A pattern with a slash is for the whole path, one without for any part of it.
bool any_matches(const std::vector<std::string>& patterns, const std::string& relative, bool parts) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    if (pattern.find('/') != std::string::npos) return glob_match(pattern, relative);
    std::string_view rest = relative;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find('/'));
      const bool last = part.size() == rest.size();
      if ((parts || last) && glob_match(pattern, part)) return true;
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    return false;
  });
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

bool WatchOptions::excluded(const std::string& relative) const {
  return include.empty() && any_matches(exclude, relative, true);
}

bool WatchOptions::wants(const std::string& relative, bool directory) const {
  if (!include.empty()) return !directory && any_matches(include, relative, false);
  return !excluded(relative);
}

std::string WatchOptions::key() const {
  return Json({path, recursive, include, exclude, events})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Watch::Watch(Runtime& runtime, WatchOptions options, UniqueFd fd)
    : options_(std::move(options)), fd_(runtime.executor(), std::move(fd)), changed_(runtime.executor()) {}

Result<std::shared_ptr<Watch>> Watch::open(Runtime& runtime, WatchOptions options) {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return fail(file_error(errno, "cannot watch", options.path));
  auto watch = std::make_shared<Watch>(runtime, std::move(options), std::move(fd));
  if (auto added = watch->add(""); !added) return fail(std::move(added.error()));
  watch->add_tree("", false);
  return watch;
}

std::string Watch::absolute(const std::string& relative) const {
  return relative.empty() ? options_.path : options_.path + "/" + relative;
}

Result<void> Watch::add(const std::string& relative) {
  const std::string path = absolute(relative);
  const int descriptor =
      ::inotify_add_watch(fd_.fd(), path.c_str(), kMask | (relative.empty() ? 0U : IN_DONT_FOLLOW));
  if (descriptor < 0) {
    auto error = file_error(errno, "cannot watch", path);
    if (errno == ENOSPC) error.code = "WATCH_START_ERROR";
    return fail(std::move(error));
  }
  directories_[descriptor] = relative;
  return {};
}

void Watch::add_tree(const std::string& relative, bool tell) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(absolute(relative).c_str()), &::closedir);
  if (!folder) return;
  while (const dirent* item = ::readdir(folder.get())) {
    const std::string name = item->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = join(relative, name);
    struct stat status {};
    if (::fstatat(::dirfd(folder.get()), item->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    const bool directory = S_ISDIR(status.st_mode);
    if (tell) {
      emit("create", path, directory);
      told_.insert(path);
    }
    if (!directory || !options_.recursive || options_.excluded(path)) continue;
    if (add(path)) add_tree(path, tell);
  }
}

void Watch::start() {
  fd_.when_readable([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->drain();
    if (self->ended_.empty()) self->start();
  });
}

void Watch::drain() {
  alignas(inotify_event) std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(fd_.fd(), buffer.data(), buffer.size());
    if (count <= 0) break;
    for (ssize_t at = 0; at < count;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      handle(event.wd, event.mask, event.len == 0 ? "" : std::string(name));
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  // What the kernel had to say of them it has said.
  told_.clear();
  changed_.notify();
}

void Watch::handle(int descriptor, std::uint32_t mask, const std::string& name) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    lost_ = true;
    ++count_;
    return;
  }
  const auto found = directories_.find(descriptor);
  if (found == directories_.end()) return;
  const std::string folder = found->second;
  if ((mask & IN_IGNORED) != 0) {
    directories_.erase(found);
    return;
  }
  if ((mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
    if (!folder.empty()) return;
    ++count_;
    ended_ = "The watched path is gone";
    return;
  }
  const bool directory = (mask & IN_ISDIR) != 0;
  if (name.empty() && directory) return;
  const std::string path = name.empty() ? "" : join(folder, name);
  if ((mask & IN_CREATE) != 0 && told_.erase(path) != 0) return;
  for (const auto& row : kTypes) {
    if ((mask & row.bit) != 0) emit(row.type, path, directory);
  }
  const bool arrived = (mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  if (arrived && directory && options_.recursive && !options_.excluded(path) && add(path))
    add_tree(path, true);
}

void Watch::emit(const char* type, const std::string& relative, bool directory) {
  const std::string name = relative.empty() ? options_.path.substr(options_.path.rfind('/') + 1) : relative;
  if (!options_.events.contains(type) || !options_.wants(name, directory)) return;
  ++count_;
  if (!keep_events_) return;
  if (events_.size() >= kMostEvents) {
    lost_ = true;
    return;
  }
  events_.push_back({type, to_utf8(absolute(relative)), directory});
}

Task<Result<Watches::Retained*>> Watches::retain(const WatchOptions& options, bool& created) {
  const std::string key = options.key();
  created = false;
  if (const auto found = retained_.find(key); found != retained_.end()) {
    found->second.watch->drain();
    if (found->second.watch->ended().empty()) {
      found->second.used = ++clock_;
      co_return &found->second;
    }
    retained_.erase(found);
  }
  auto opening = runtime_.offload([this, options] { return Watch::open(runtime_, options); });
  auto watch = co_await std::move(opening);
  if (!watch) co_return fail(std::move(watch.error()));
  (*watch)->keep_count_only();
  (*watch)->start();
  if (retained_.size() >= kMostRetained) {
    const auto oldest =
        std::ranges::min_element(retained_, {}, [](const auto& entry) { return entry.second.used; });
    retained_.erase(oldest);
  }
  created = true;
  auto& entry = retained_[key];
  entry = {random_id("w"), std::move(*watch), ++clock_};
  co_return &entry;
}

}  // namespace sandboxd::agent
