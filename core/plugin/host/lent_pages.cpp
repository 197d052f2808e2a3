#include "core/plugin/host/lent_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
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

/// 0 if there is no place left.
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

}  // namespace

LentPages::LentPages(std::size_t bytes) {
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  size_ = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
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

bool is_read_only_lent(const void* address) {
  const std::uintptr_t at = number_of(address);
  return std::any_of(g_read_only.begin(), g_read_only.end(), [at](const PageRange& range) {
    const std::uintptr_t begin = range.begin.load();
    return begin != 0 && begin <= at && at < range.end.load();
  });
}

}  // namespace topolet::plugin
