#include "core/base/process_starts.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace topolet {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif
/// The bit that marks system calls of another ABI in the same process (x32).
[[maybe_unused]] constexpr std::uint32_t kOtherAbiBit = 0x40000000;

constexpr std::uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter end_with(std::uint32_t verdict) { return BPF_STMT(BPF_RET | BPF_K, verdict); }
/// Skips the next instruction unless the loaded word is `value`.
constexpr sock_filter if_equal(std::uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }

/// A filter cannot read what clone3 is given, so it does not exist here: libraries then use clone. Neither do the calls
/// of other architectures, which have other numbers.
std::vector<sock_filter> filter_program() {
  std::vector<sock_filter> program = {
      load(offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      end_with(kNoSuchCall),
      load(offsetof(seccomp_data, nr)),
      if_equal(SYS_clone),
      end_with(SECCOMP_RET_USER_NOTIF),
      if_equal(SYS_clone3),
      end_with(kNoSuchCall),
  };
#if defined(__x86_64__)
  for (const int call : {SYS_fork, SYS_vfork}) {
    program.push_back(if_equal(static_cast<std::uint32_t>(call)));
    program.push_back(end_with(SECCOMP_RET_USER_NOTIF));
  }
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kOtherAbiBit, 0, 1));
  program.push_back(end_with(kNoSuchCall));
#endif
  program.push_back(end_with(SECCOMP_RET_ALLOW));
  return program;
}

/// A later kernel's structs may be longer than those of the headers.
template <class Struct>
struct Padded {
  Struct content;
  std::array<char, 256> later;
};

}  // namespace

UniqueFd ask_before_starts() {
#if defined(SECCOMP_USER_NOTIF_FLAG_CONTINUE)
  if (kArchitecture == 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return UniqueFd();
  std::vector<sock_filter> instructions = filter_program();
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  const auto listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  return UniqueFd(static_cast<int>(listener));
#else
  return UniqueFd();
#endif
}

std::optional<StartRequest> next_start_request(const UniqueFd& requests) {
#if defined(SECCOMP_USER_NOTIF_FLAG_CONTINUE)
  Padded<seccomp_notif> notice;
  std::memset(&notice, 0, sizeof(notice));
  if (::ioctl(requests.get(), SECCOMP_IOCTL_NOTIF_RECV, &notice.content) != 0) return std::nullopt;
  const seccomp_data& call = notice.content.data;
  const bool is_thread = call.nr == SYS_clone && (call.args[0] & CLONE_THREAD) != 0;
  return StartRequest{notice.content.id, is_thread};
#else
  return std::nullopt;
#endif
}

void allow_start([[maybe_unused]] const UniqueFd& requests, [[maybe_unused]] const StartRequest& request) {
#if defined(SECCOMP_USER_NOTIF_FLAG_CONTINUE)
  Padded<seccomp_notif_resp> answer;
  std::memset(&answer, 0, sizeof(answer));
  answer.content.id = request.id;
  answer.content.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  // It may have been killed meanwhile.
  static_cast<void>(::ioctl(requests.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer.content));
#endif
}

}  // namespace topolet
