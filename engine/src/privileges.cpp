#include "sandboxd/privileges.hpp"

#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace sandboxd {
namespace {

constexpr std::array<int, 13> kept_capabilities{
    CAP_CHOWN,   CAP_DAC_OVERRIDE,     CAP_FOWNER,     CAP_FSETID, CAP_KILL,        CAP_SETGID, CAP_SETUID,
    CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_MKNOD,  CAP_AUDIT_WRITE, CAP_SETFCAP};

bool is_kept(int capability) {
  return std::find(kept_capabilities.begin(), kept_capabilities.end(), capability) != kept_capabilities.end();
}

// Refused with EPERM: mounts and namespaces, the kernel itself, other processes' keys, clocks, raw hardware.
constexpr std::array refused{SCMP_SYS(mount),
                             SCMP_SYS(umount2),
                             SCMP_SYS(umount),
                             SCMP_SYS(pivot_root),
                             SCMP_SYS(move_mount),
                             SCMP_SYS(open_tree),
                             SCMP_SYS(fsopen),
                             SCMP_SYS(fsconfig),
                             SCMP_SYS(fsmount),
                             SCMP_SYS(fspick),
                             SCMP_SYS(mount_setattr),
                             SCMP_SYS(setns),
                             SCMP_SYS(keyctl),
                             SCMP_SYS(add_key),
                             SCMP_SYS(request_key),
                             SCMP_SYS(bpf),
                             SCMP_SYS(perf_event_open),
                             SCMP_SYS(kexec_load),
                             SCMP_SYS(kexec_file_load),
                             SCMP_SYS(init_module),
                             SCMP_SYS(finit_module),
                             SCMP_SYS(delete_module),
                             SCMP_SYS(userfaultfd),
                             SCMP_SYS(acct),
                             SCMP_SYS(swapon),
                             SCMP_SYS(swapoff),
                             SCMP_SYS(reboot),
                             SCMP_SYS(quotactl),
                             SCMP_SYS(quotactl_fd),
                             SCMP_SYS(open_by_handle_at),
                             SCMP_SYS(iopl),
                             SCMP_SYS(ioperm),
                             SCMP_SYS(settimeofday),
                             SCMP_SYS(clock_settime),
                             SCMP_SYS(clock_adjtime),
                             SCMP_SYS(syslog),
                             SCMP_SYS(vhangup),
                             SCMP_SYS(nfsservctl),
                             SCMP_SYS(fanotify_init),
                             SCMP_SYS(lookup_dcookie),
                             SCMP_SYS(modify_ldt),
                             SCMP_SYS(kcmp)};
// Refused with ENOSYS: programs know how to do without.
constexpr std::array unknown{SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
                             SCMP_SYS(clone3)};
constexpr std::array<std::uint64_t, 8> namespace_flags{CLONE_NEWUSER,   CLONE_NEWNS,  CLONE_NEWPID,
                                                       CLONE_NEWNET,    CLONE_NEWIPC, CLONE_NEWUTS,
                                                       CLONE_NEWCGROUP, CLONE_NEWTIME};
constexpr std::array<int, 4> allowed_families{AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

int add_rules(scmp_filter_ctx filter) {
  int status = 0;
  const auto add = [&](std::uint32_t action, int call) {
    const int result = ::seccomp_rule_add(filter, action, call, 0);
    // EDOM, EINVAL: this architecture has no such call.
    if (result != 0 && result != -EDOM && result != -EINVAL) status = result;
  };
  for (const int call : refused) add(SCMP_ACT_ERRNO(EPERM), call);
  for (const int call : unknown) add(SCMP_ACT_ERRNO(ENOSYS), call);
  const auto add_when = [&](int error, int call, scmp_arg_cmp when) {
    const int result =
        ::seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), call, 1, &when);
    if (result != 0) status = result;
  };
  for (const auto flag : namespace_flags) {
    add_when(EPERM, SCMP_SYS(unshare), SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    // The lowest byte of clone's flags is the exit signal, where CLONE_NEWTIME's bit means something else.
    if (flag != CLONE_NEWTIME) add_when(EPERM, SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  // Everything but the four allowed families; virtual sockets of a machine's host are not a namespace's
  // matter.
  int previous = 0;
  for (const int family : allowed_families) {
    for (int other = previous; other < family; ++other) {
      add_when(EAFNOSUPPORT, SCMP_SYS(socket), SCMP_A0_32(SCMP_CMP_EQ, static_cast<std::uint32_t>(other)));
    }
    previous = family + 1;
  }
  add_when(EAFNOSUPPORT, SCMP_SYS(socket), SCMP_A0_32(SCMP_CMP_GE, static_cast<std::uint32_t>(previous)));
  // Typing into a terminal for somebody else.
  add_when(EPERM, SCMP_SYS(ioctl), SCMP_A1_32(SCMP_CMP_EQ, TIOCSTI));
  add_when(EPERM, SCMP_SYS(ioctl), SCMP_A1_32(SCMP_CMP_EQ, TIOCLINUX));
  return status;
}

}  // namespace

SysStatus drop_privileges() {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability) {
    if (!is_kept(capability) && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL) {
      return failed("capabilities_refused", "drop a capability from the bounding set");
    }
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (const int capability : kept_capabilities) {
    auto& word = data[static_cast<std::size_t>(capability) / 32];
    word.effective |= 1U << (static_cast<unsigned>(capability) % 32U);
    word.permitted = word.effective;
  }
  if (::syscall(SYS_capset, &header, data.data()) != 0) return failed("capabilities_refused", "capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("no_new_privs_refused", "no_new_privs");
  return {};
}

void hide_from_commands() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

SysResult<CallFilter> CallFilter::make() {
  const Filter filter(::seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (!filter) return failed("seccomp_refused", "make a system call filter", ENOMEM);
  // Calls of another architecture (32-bit programs) would pass by every rule.
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (const int status = add_rules(filter.get()); status != 0)
    return failed("seccomp_refused", "add a rule", -status);
  const Fd file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file) return failed("seccomp_refused", "memfd_create");
  if (const int status = ::seccomp_export_bpf(filter.get(), file.get()); status != 0)
    return failed("seccomp_refused", "export the filter", -status);
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size <= 0) return failed("seccomp_refused", "measure the filter");
  CallFilter made;
  made.program_.resize(static_cast<std::size_t>(size) / sizeof(sock_filter));
  const auto bytes = std::as_writable_bytes(std::span(made.program_));
  if (::pread(file.get(), bytes.data(), bytes.size(), 0) != size)
    return failed("seccomp_refused", "read the filter");
  return made;
}

SysStatus CallFilter::install() const {
  sock_fprog program{static_cast<unsigned short>(program_.size()), const_cast<sock_filter*>(program_.data())};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return failed("seccomp_refused", "load the filter");
  return {};
}

}  // namespace sandboxd
