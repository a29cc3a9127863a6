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

constexpr int kStarvedSteps = 6;

/// The two first numbers of /proc/<pid>/schedstat.
bool read_account(pid_t pid, std::uint64_t& ran, std::uint64_t& waited) {
  const std::string path = "/proc/" + std::to_string(pid) + "/schedstat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 128> text{};
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size <= 0) return false;
  const char* end = text.data() + size;
  const auto first = std::from_chars(text.data(), end, ran);
  if (first.ec != std::errc() || first.ptr == end) return false;
  return std::from_chars(first.ptr + 1, end, waited).ec == std::errc();
}

}  // namespace

bool StarvationWatch::starved() {
  const auto now = Clock::now();
  if (now < next_) return false;
  next_ = now + kStep;
  std::map<pid_t, Account> accounts;
  Account sum;
  for (const pid_t pid : tree_members({root_, true, 0})) {
    Account account;
    if (!read_account(pid, account.ran, account.waited)) continue;
    const auto before = accounts_.find(pid);
    const Account base = before == accounts_.end() ? Account{} : before->second;
    sum.ran += account.ran - base.ran;
    sum.waited += account.waited - base.waited;
    accounts[pid] = account;
  }
  const bool first = accounts_.empty();
  accounts_ = std::move(accounts);
  // At least one process wanted to run nearly all the time, and all of them together ran for 25 ms of five
  // seconds.
  const auto step = static_cast<std::uint64_t>(std::chrono::nanoseconds(kStep).count());
  steps_ = !first && sum.waited > step / 10 * 8 && sum.ran < step / 200 ? steps_ + 1 : 0;
  return steps_ >= kStarvedSteps;
}

AgentError starved_error() {
  const auto count = count_threads();
  AgentError error{"RESOURCE_BUSY",
                   "The command got next to no processor time for half a minute and was "
                   "ended: the sandbox runs " +
                       std::to_string(count) + " processes and threads"};
  error.context = {{"resource", "cpu"}, {"processes", count}};
  error.operation = "command.execute";
  return error;
}

}  // namespace sandboxd::agent
