// Pages of memory that plugins are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace topolet::plugin {

/// The effect of a write to pages that are mapped twice.
enum class OnWrite : std::uint8_t {
  kCrash,  ///< a SIGSEGV, which is_read_only_lent() tells apart
  kNote,   ///< it is noted and hits a private copy of the page, so that nobody sees it at own()
};

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
  /// The same, mapped twice: whoever is lent the pages can read them only, and make them writable by no means; the host
  /// writes at own(). Nothing where the kernel cannot do that (Linux 5.1 can), beyond the first 1,023 that are
  /// read-only at a time, or, with kNote, where record_crashes_to() has not been called.
  static std::optional<LentPages> mapped_twice(std::size_t bytes, OnWrite on_write);
  ~LentPages();
  LentPages(LentPages&& other) noexcept;
  LentPages& operator=(LentPages&& other) noexcept;
  LentPages(const LentPages&) = delete;
  LentPages& operator=(const LentPages&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool is_mapped_twice() const { return own_ != nullptr; }
  /// Where the host writes.
  std::byte* own() const { return is_mapped_twice() ? own_ : data_; }

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
  // For pages that are mapped twice.

  /// Returns their state since they were mapped, at the cost of one word of each page of the first `count` bytes. Other
  /// memory in their place is found if that word differs.
  LentState noted_state(std::size_t count) const;
  /// The same, but all of these bytes are compared.
  LentState compared_state(std::size_t count) const;

  /// They stay mapped for ever: a plugin may write there at any time, or something else may be there by now.
  void leave() { data_ = nullptr; }

 private:
  LentPages() = default;
  void release();

  std::byte* data_ = nullptr;
  std::byte* own_ = nullptr;  ///< the second mapping of pages that are mapped twice
  std::size_t size_ = 0;
  std::size_t slot_ = 0;  ///< where it is listed while it is read-only; 0: nowhere
};

/// From now on the handler of SIGSEGV calls leave_faulty_access() and note_write_to_lent().
void expect_notes_of_writes();

/// For the crash handler, at a fault of this thread: true if it may go on, because it wrote to pages with
/// OnWrite::kNote. Async-signal-safe.
bool note_write_to_lent(void* address);

/// For the crash handler: does not return if this thread faulted in a function of LentPages that does not crash.
void leave_faulty_access();

/// Returns true if the address lies in pages that are lent and read-only. Async-signal-safe. Knows only the first 1,023
/// LentPages that are read-only at a time; further ones are read-only all the same.
bool is_read_only_lent(const void* address);

}  // namespace topolet::plugin
