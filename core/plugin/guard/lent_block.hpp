// The data that plugins are shown: copies, in memory that holds nothing else.
#pragma once

#include <topolet/abi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/mutex.hpp"
#include "core/plugin/guard/lent_pages.hpp"

namespace topolet::plugin {

/// The effect of a write by a plugin.
enum class LentGuard : std::uint8_t {
  kFound,       ///< LentBlock::check() finds it
  kReadOnly,    ///< the plugin crashes, unless it has made the pages writable; check() finds that
  kUnwritable,  ///< the plugin crashes, and cannot make the pages writable; dearer to make, but not to check
};

/// A piece of memory to lend: pages that are mapped twice. With kReadOnly, and where there can be none, others; with
/// kFound these have a copy to compare them with, which no plugin is given the address of.
struct LentChunk {
  LentPages pages;
  std::unique_ptr<std::byte[]> copy;

  std::byte* own() const { return copy ? copy.get() : pages.own(); }
};

/// Keeps what was lent to lend it again: new pages cost a fault each. Safe from any thread.
class LentPool {
 public:
  std::optional<LentChunk> take(std::size_t bytes) TOPOLET_EXCLUDES(mutex_);
  void give_back(LentChunk chunk) TOPOLET_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostBytes = 4 << 20;

  Mutex mutex_;
  std::vector<LentChunk> spare_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t bytes_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

/// The way in which memory is lent, and where it comes from.
struct LentMemory {
  LentGuard guard = LentGuard::kFound;
  std::shared_ptr<LentPool> pool = nullptr;  ///< null: from the kernel. Used by kFound only
};

/// Memory that the host fills piece by piece, seals, and then shows to plugins. Its data points into the block only.
/// Once a plugin has written there, or has unmapped or protected it, the block is no longer usable, and its memory is
/// left alone for ever. Not synchronised. Every function that allocates throws std::bad_alloc.
class LentBlock {
 public:
  explicit LentBlock(LentMemory memory = {}) : memory_(std::move(memory)) {
    if (memory_.guard != LentGuard::kFound) memory_.pool = nullptr;
  }
  ~LentBlock();
  LentBlock(const LentBlock&) = delete;
  LentBlock& operator=(const LentBlock&) = delete;

  /// The same elements at two addresses: the host writes `own`, until the block is sealed; plugins are shown `lent`.
  template <class T>
  struct Array {
    T* own = nullptr;
    const T* lent = nullptr;
  };

  /// Null for no elements. Their bytes are not set.
  template <class T>
  Array<T> make_array(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count == 0) return {};
    const Place place = allocate(count * sizeof(T), alignof(T));
    return {reinterpret_cast<T*>(place.own), reinterpret_cast<const T*>(place.lent)};  // NOLINT
  }

  // Copies, to be shown.
  template <class T>
  const T* copy_struct(const T& one) {
    const Array<T> copied = make_array<T>(1);
    *copied.own = one;
    return copied.lent;
  }
  template <class T>
  const T* copy_array(const std::vector<T>& items) {
    const Array<T> copied = make_array<T>(items.size());
    std::copy(items.begin(), items.end(), copied.own);
    return copied.lent;
  }
  topolet_str copy(std::string_view text);
  template <class Tag>
  topolet_set copy(const IndexSet<Tag>& set) {
    return copy_words(set.words());
  }
  topolet_strs copy(const std::vector<std::string>& strings);
  /// Copies pairs of strings.
  template <class Pairs>
  topolet_kvs copy_pairs(const Pairs& pairs) {
    const Array<topolet_kv> copied = make_array<topolet_kv>(pairs.size());
    std::size_t i = 0;
    for (const auto& [key, value] : pairs) copied.own[i++] = {copy(key), copy(value)};
    return {copied.lent, pairs.size()};
  }

  /// Makes the block ready to be shown. Data that is added later is shown when it is sealed again; with kReadOnly,
  /// nothing may be added before clear().
  void seal();
  /// Returns its state since it was sealed. Costs a few bytes of each page where the pages are mapped twice; then,
  /// other memory that a plugin has mapped in their place may be found by check_all() only.
  LentState check() const;
  /// The same, by all bytes.
  LentState check_all() const;
  /// The same, which is forgotten at once. Safe from any thread where it is sealed for the last time.
  LentState check_once() const;
  /// Returns true if no damage has been found so far.
  bool is_intact() const { return state_ == LentState::kIntact; }
  /// Empties it, to be filled anew; in other memory, if it was of no use any more.
  void clear();
  std::size_t used_bytes() const;
  /// Once it is destroyed, its memory is lent to nobody any more: a call may be inside that knows it.
  void retire() { memory_.pool = nullptr; }

 private:
  struct Place {
    std::byte* own;
    const std::byte* lent;
  };
  struct UsedChunk {
    LentChunk chunk;
    std::size_t used = 0;
    std::size_t sealed = 0;                      ///< the first of them
    std::optional<std::uint64_t> checksum = {};  ///< of these, if they are protected
  };
  enum class Thoroughness : std::uint8_t { kQuick, kFull };

  LentState state_of(const UsedChunk& used, Thoroughness thoroughness) const;
  LentState look(Thoroughness thoroughness) const;
  Place allocate(std::size_t bytes, std::size_t alignment);
  LentChunk new_chunk(std::size_t bytes);
  UsedChunk& add_chunk(std::size_t least_bytes);
  topolet_set copy_words(const set_words::Words& words);
  void leave_chunks();
  void leave_damaged_chunks();

  LentMemory memory_;
  mutable LentState state_ = LentState::kIntact;
  std::vector<UsedChunk> chunks_;
  std::size_t current_ = 0;  ///< the chunk that is being filled; those behind it are empty
};

}  // namespace topolet::plugin
