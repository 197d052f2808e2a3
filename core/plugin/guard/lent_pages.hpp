// Pages of memory that plugins are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace topolet::plugin {

enum class LentState : std::uint8_t {
  kIntact,
  kWritten,
  kGone,  ///< unmapped, or protected
};

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

  // A plugin may have unmapped the pages, or changed their protection. Where record_crashes_to() has been called, the
  // following do not crash then.

  /// Returns their state, if they held these bytes at their beginning and could be written to.
  LentState state_beside(const std::byte* bytes, std::size_t count) const;
  /// Returns the checksum of their beginning; nothing if it cannot be read.
  std::optional<std::uint64_t> checksum(std::size_t count) const;
  /// False if they cannot be written to.
  bool write(std::size_t at, const std::byte* bytes, std::size_t count);

  /// They stay mapped for ever: a plugin may write there at any time, or something else may be there by now.
  void leave() { data_ = nullptr; }

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t slot_ = 0;  ///< where it is listed while it is read-only; 0: nowhere
};

/// For the crash handler: does not return if this thread faulted in a function of LentPages that does not crash.
void leave_faulty_access();

/// Returns true if the address lies in pages that are lent and read-only. Async-signal-safe. Knows only the first 255
/// LentPages that are read-only at a time; further ones are read-only all the same.
bool is_read_only_lent(const void* address);

}  // namespace topolet::plugin
