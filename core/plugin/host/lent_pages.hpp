// Pages of memory that plugins are shown.
#pragma once

#include <cstddef>

namespace topolet::plugin {

/// Whole pages that are used for nothing else, so that a plugin that writes there once more when its call is over hits
/// nothing of the host's. Not synchronised.
class LentPages {
 public:
  /// At least so many bytes, all zero. Throws std::bad_alloc.
  explicit LentPages(std::size_t bytes);
  ~LentPages();
  LentPages(LentPages&& other) noexcept;
  LentPages& operator=(LentPages&& other) noexcept;
  LentPages(const LentPages&) = delete;
  LentPages& operator=(const LentPages&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// From now on a write is a SIGSEGV, which is_read_only_lent() tells apart. Throws std::bad_alloc where the kernel
  /// refuses, as it does for want of memory only.
  void forbid_writing();
  void allow_writing();

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t slot_ = 0;  ///< where it is listed while it is read-only; 0: nowhere
};

/// Whether the address lies in pages that are lent and read-only. Async-signal-safe. Beyond the first 255 LentPages
/// that are read-only at a time, nobody knows; they are read-only all the same.
bool is_read_only_lent(const void* address);

}  // namespace topolet::plugin
