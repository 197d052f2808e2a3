#include "core/plugin/guard/lent_pages.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace topolet::plugin {
namespace {

struct PageRange {
  std::atomic<std::uintptr_t> begin = 0;  ///< 0: free
  std::atomic<std::uintptr_t> end = 0;
};
/// For the crash handler, which must not wait for a lock. The first one is never used.
std::array<PageRange, 256> g_read_only;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }  // NOLINT

/// Lists read-only pages. Returns their slot; 0 if there is no place left.
std::size_t list_read_only(std::uintptr_t begin, std::size_t size) {
  for (std::size_t slot = 1; slot < g_read_only.size(); ++slot) {
    std::uintptr_t free = 0;
    if (!g_read_only[slot].begin.compare_exchange_strong(free, begin)) continue;
    g_read_only[slot].end = begin + size;
    return slot;
  }
  return 0;
}

void unlist_read_only(std::size_t slot) {
  g_read_only[slot].end = 0;
  g_read_only[slot].begin = 0;
}

constinit thread_local sigjmp_buf* t_way_back = nullptr;

/// False if a fault ended the access, which therefore must own nothing.
[[gnu::noinline]] bool access_safely(void (*access)(void*), void* argument) {
  sigjmp_buf way_back;
  if (sigsetjmp(way_back, 0) != 0) {  // NOLINT(cert-err52-cpp): nothing that owns something is left out
    t_way_back = nullptr;
    sigset_t faults;
    ::sigemptyset(&faults);
    ::sigaddset(&faults, SIGSEGV);
    ::sigaddset(&faults, SIGBUS);
    ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
    return false;
  }
  t_way_back = &way_back;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_way_back = nullptr;
  return true;
}

template <class Access>
bool can(Access access) {
  return access_safely([](void* argument) { (*static_cast<Access*>(argument))(); }, &access);
}

std::size_t page_size() {
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return kPage;
}

std::uint64_t sum_of(const std::byte* bytes, std::size_t count) {
  std::uint64_t sum = count;
  for (; count >= sizeof(sum); bytes += sizeof(sum), count -= sizeof(sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    sum = std::rotl((sum ^ word) * 0x9e3779b97f4a7c15U, 29);
  }
  for (; count > 0; ++bytes, --count)
    sum = std::rotl((sum ^ std::to_integer<std::uint64_t>(*bytes)) * 0x100000001b3U, 29);
  return sum;
}

}  // namespace

LentPages::LentPages(std::size_t bytes) {
  size_ = (std::max<std::size_t>(bytes, 1) + page_size() - 1) / page_size() * page_size();
  void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(mapped);
}

LentPages::~LentPages() { release(); }

LentPages::LentPages(LentPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      slot_(std::exchange(other.slot_, 0)) {}

LentPages& LentPages::operator=(LentPages&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  slot_ = std::exchange(other.slot_, 0);
  return *this;
}

void LentPages::release() {
  if (data_ == nullptr) return;
  if (slot_ != 0) unlist_read_only(slot_);
  ::munmap(data_, size_);
}

void LentPages::forbid_writing() {
  if (::mprotect(data_, size_, PROT_READ) != 0) throw std::bad_alloc();
  if (slot_ == 0) slot_ = list_read_only(number_of(data_), size_);
}

void LentPages::allow_writing() {
  if (::mprotect(data_, size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  if (slot_ != 0) unlist_read_only(std::exchange(slot_, 0));
}

LentState LentPages::state_beside(const std::byte* bytes, std::size_t count) const {
  bool is_same = false;
  const bool accessible = can([&] {
    is_same = std::memcmp(data_, bytes, count) == 0;
    for (std::size_t at = 0; at < count; at += page_size()) {
      auto* byte = reinterpret_cast<volatile unsigned char*>(data_ + at);  // NOLINT
      *byte = *byte;
    }
  });
  if (!accessible) return LentState::kGone;
  return is_same ? LentState::kIntact : LentState::kWritten;
}

std::optional<std::uint64_t> LentPages::checksum(std::size_t count) const {
  std::uint64_t sum = 0;
  return can([&] { sum = sum_of(data_, count); }) ? std::optional(sum) : std::nullopt;
}

bool LentPages::write(std::size_t at, const std::byte* bytes, std::size_t count) {
  return can([&] { std::memcpy(data_ + at, bytes, count); });
}

void leave_faulty_access() {
  if (t_way_back != nullptr) ::siglongjmp(*t_way_back, 1);  // NOLINT(cert-err52-cpp)
}

bool is_read_only_lent(const void* address) {
  const std::uintptr_t at = number_of(address);
  return std::any_of(g_read_only.begin(), g_read_only.end(), [at](const PageRange& range) {
    const std::uintptr_t begin = range.begin.load();
    return begin != 0 && begin <= at && at < range.end.load();
  });
}

}  // namespace topolet::plugin
