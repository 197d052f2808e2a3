#include "core/plugin/guard/lent_pages.hpp"

#include <fcntl.h>
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

#include "core/base/unique_fd.hpp"

namespace topolet::plugin {
namespace {

struct PageRange {
  std::atomic<std::uintptr_t> begin = 0;  ///< 0: free
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<const std::byte*> own = nullptr;  ///< where writes are noted: the same pages, where the host writes
  std::atomic<std::size_t> faults = 0;          ///< that were noted
};
/// For the crash handler, which must not wait for a lock. The first one is never used.
std::array<PageRange, 1024> g_read_only;
std::atomic<bool> g_writes_are_noted = false;

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
  PageRange& range = g_read_only[slot];
  range.end = 0;
  range.own = nullptr;
  range.faults = 0;
  range.begin = 0;
}

PageRange* range_of(std::uintptr_t address) {
  const auto has_it = [address](const PageRange& range) {
    const std::uintptr_t begin = range.begin.load();
    return begin != 0 && begin <= address && address < range.end.load();
  };
  const auto found = std::find_if(g_read_only.begin(), g_read_only.end(), has_it);
  return found == g_read_only.end() ? nullptr : &*found;
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

std::size_t whole_pages(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + page_size() - 1) / page_size() * page_size();
}

/// Returns memory of so many bytes that can be written where it is mapped now, and nowhere else from then on: not even
/// by who changes the protection of a later mapping.
UniqueFd memory_written_at_once(std::size_t bytes, std::byte*& writable) {
#ifdef MFD_NOEXEC_SEAL
  constexpr unsigned kNoCode = MFD_NOEXEC_SEAL;
#else
  constexpr unsigned kNoCode = 8;
#endif
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd memory(::memfd_create("topolet-lent", kFlags | kNoCode));
  if (!memory) memory = UniqueFd(::memfd_create("topolet-lent", kFlags));  // Linux before 6.3
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return {};
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (mapped == MAP_FAILED) return {};
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    ::munmap(mapped, bytes);
    return {};
  }
  writable = static_cast<std::byte*>(mapped);
  return memory;
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
  size_ = whole_pages(bytes);
  void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(mapped);
}

std::optional<LentPages> LentPages::mapped_twice(std::size_t bytes, OnWrite on_write) {
  if (on_write == OnWrite::kNote && !g_writes_are_noted) return std::nullopt;
  LentPages pages;
  std::byte* writable = nullptr;
  const std::size_t size = whole_pages(bytes);
  const UniqueFd memory = memory_written_at_once(size, writable);
  if (!memory) return std::nullopt;
  pages.own_ = writable;
  pages.size_ = size;
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (mapped != MAP_FAILED) {
    pages.data_ = static_cast<std::byte*>(mapped);
    pages.slot_ = list_read_only(number_of(mapped), size);
  }
  if (pages.slot_ == 0) {
    ::munmap(writable, size);
    pages.own_ = nullptr;
    return std::nullopt;
  }
  if (on_write == OnWrite::kNote) g_read_only[pages.slot_].own = writable;
  return pages;
}

LentPages::~LentPages() { release(); }

LentPages::LentPages(LentPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      own_(std::exchange(other.own_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      slot_(std::exchange(other.slot_, 0)) {}

LentPages& LentPages::operator=(LentPages&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  own_ = std::exchange(other.own_, nullptr);
  size_ = std::exchange(other.size_, 0);
  slot_ = std::exchange(other.slot_, 0);
  return *this;
}

void LentPages::release() {
  if (data_ == nullptr) return;
  if (slot_ != 0) unlist_read_only(slot_);
  ::munmap(data_, size_);
  if (is_mapped_twice()) ::munmap(own_, size_);
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

LentState LentPages::noted_state(std::size_t count) const {
  bool is_same = true;
  const bool accessible = can([&] {
    for (std::size_t at = 0; at < count; at += page_size()) {
      const auto* lent = reinterpret_cast<const volatile std::uint64_t*>(data_ + at);  // NOLINT
      const auto* own = reinterpret_cast<const volatile std::uint64_t*>(own_ + at);    // NOLINT
      is_same = is_same && *lent == *own;
    }
  });
  if (!accessible) return LentState::kGone;
  return is_same && g_read_only[slot_].faults == 0 ? LentState::kIntact : LentState::kWritten;
}

LentState LentPages::compared_state(std::size_t count) const {
  const LentState state = noted_state(count);
  if (state != LentState::kIntact) return state;
  bool is_same = false;
  if (!can([&] { is_same = std::memcmp(data_, own_, count) == 0; })) return LentState::kGone;
  return is_same ? LentState::kIntact : LentState::kWritten;
}

void expect_notes_of_writes() { g_writes_are_noted = true; }

bool note_write_to_lent(void* address) {
  const std::uintptr_t at = number_of(address);
  PageRange* const range = range_of(at);
  const std::byte* const own = range == nullptr ? nullptr : range->own.load();
  if (own == nullptr) return false;
  const std::size_t page = page_size();
  // Each page once, by several threads at a time; an access that goes on to fault is not one to read or write.
  const std::size_t most = 8 * (range->end - range->begin) / page;
  if (range->faults.fetch_add(1) >= most) return false;
  void* const copy = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  const std::uintptr_t begin = at / page * page;
  std::memcpy(copy, own + (begin - range->begin), page);
  // In one step, as other threads may be reading there.
  return ::mremap(copy, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(begin)) !=  // NOLINT
         MAP_FAILED;
}

void leave_faulty_access() {
  if (t_way_back != nullptr) ::siglongjmp(*t_way_back, 1);  // NOLINT(cert-err52-cpp)
}

bool is_read_only_lent(const void* address) { return range_of(number_of(address)) != nullptr; }

}  // namespace topolet::plugin
