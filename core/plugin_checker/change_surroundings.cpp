#include "core/plugin_checker/change_surroundings.hpp"

#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/plugin_checker/random_request.hpp"

namespace topolet::plugin_checker {
namespace {

void map_pages(std::size_t count) {
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  static_cast<void>(::mmap(nullptr, count * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/// Fills the gaps between what is mapped, so that libraries and large blocks go below it all, and moves the end of the
/// heap: whatever comes lies elsewhere than in a process of the same program. It is all left as it is.
void move_memory(RandomSource& rng) {
  for (const std::size_t pages : {1024, 256, 64, 16, 4, 1}) {
    for (int i = 0; i < 64; ++i) map_pages(pages);
  }
  map_pages(17 + rng.below(4096));
  for (std::uint64_t i = 40 + rng.below(40); i > 0; --i) {
    volatile char* block = static_cast<char*>(std::malloc(24 + rng.below(3000)));  // NOLINT
    if (block != nullptr) *block = 1;
  }
  // What is allocated holds another value until it is written.
  ::mallopt(M_PERTURB, 0x5a);
}

void change_environment() {
  ::clearenv();
  for (const auto& [name, value] : {std::pair<const char*, const char*>{"HOME", "/nonexistent"},
                                    {"LANG", "tr_TR.UTF-8"},
                                    {"PATH", "/usr/bin:/bin"},
                                    {"TZ", "Pacific/Chatham"},
                                    {"TOPOLET_PLUGIN_CHECK", "other-process"}}) {
    ::setenv(name, value, 1);
  }
}

/// The lowest of those that may be used.
void keep_one_cpu() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

/// Where this process may: for itself only.
void rename_host() {
  constexpr std::string_view kName = "other";
  if (::unshare(CLONE_NEWUTS) == 0) static_cast<void>(::sethostname(kName.data(), kName.size()));
}

}  // namespace

void change_surroundings(std::uint64_t seed) {
  RandomSource rng(seed ^ 0x6f74686572ULL);
  move_memory(rng);
  change_environment();
  keep_one_cpu();
  rename_host();
}

}  // namespace topolet::plugin_checker
