#include "sandboxd/agent/starvation.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "sandboxd/agent/fd.hpp"
#include "sandboxd/agent/spawn.hpp"

namespace sandboxd::agent {
namespace {

/// Points at which a command is starved: one for a step with next to nothing, more for one without hope.
constexpr int kStarved = 12;
constexpr int kHopeless = 4;
/// More than anybody runs on purpose where each gets less than a thousandth of a processor.
constexpr std::uint64_t kCrowd = 64;

/// The first number of /proc/<pid>/schedstat: nanoseconds on a processor.
bool read_ran(pid_t pid, std::uint64_t& ran) {
  const std::string path = "/proc/" + std::to_string(pid) + "/schedstat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 128> text{};
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  return size > 0 && std::from_chars(text.data(), text.data() + size, ran).ec == std::errc();
}

}  // namespace

bool StarvationWatch::starved() {
  const auto now = Clock::now();
  if (now < next_) return false;
  next_ = now + kStep;
  std::map<pid_t, std::uint64_t> ran;
  std::uint64_t sum = 0;
  // Whether one wants to run is asked of its state: a kernel may count a time in which its group has used up
  // its quota as neither waiting nor running.
  bool wants = false;
  for (const auto& [pid, runnable] : tree_members(tree_)) {
    std::uint64_t total = 0;
    if (!read_ran(pid, total)) continue;
    const auto before = ran_.find(pid);
    const bool unknown = before == ran_.end() && pid == tree_.root;
    sum += unknown ? 0 : total - (before == ran_.end() ? 0 : before->second);
    wants = wants || runnable;
    ran[pid] = total;
  }
  ran_ = std::move(ran);
  const auto step = static_cast<std::uint64_t>(std::chrono::nanoseconds(kStep).count());
  const bool hopeless = sum < step / 1000 && wants && count_threads() > kCrowd;
  const int points = hopeless ? kHopeless : 1;
  score_ = wants && sum < step / 200 ? score_ + points : 0;
  return score_ >= kStarved;
}

AgentError starved_error() {
  const auto count = count_threads();
  AgentError error{"RESOURCE_BUSY",
                   "The command got next to no processor time and was ended: the sandbox runs " +
                       std::to_string(count) + " processes and threads"};
  error.context = {{"resource", "cpu"}, {"processes", count}};
  error.operation = "command.execute";
  return error;
}

}  // namespace sandboxd::agent
