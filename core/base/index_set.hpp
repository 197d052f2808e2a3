// Sets of OS indices: CPUs (PUs) and NUMA nodes, of any number and as sparse as the machine numbers them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.hpp"

namespace topolet {

/// The largest OS index a list may name; beyond what Linux allows (CONFIG_NR_CPUS is at most 8192), small enough that
/// a mistyped list cannot ask for much memory.
inline constexpr std::uint32_t kMaxOsIndex = 65535;

namespace detail {

Result<std::vector<std::uint64_t>> parse_index_list(std::string_view list);
std::string format_index_list(const std::vector<std::uint64_t>& words);

}  // namespace detail

/// A set of OS indices as 64-bit words, lowest first, without trailing zero words, so that equal sets compare equal.
/// `Tag` keeps CPUs and nodes apart. A plain value; not synchronised.
template <class Tag>
class IndexSet {
 public:
  using Words = std::vector<std::uint64_t>;

  IndexSet() = default;
  IndexSet(std::initializer_list<std::uint32_t> indices) {
    for (std::uint32_t index : indices) insert(index);
  }

  /// Reads the kernel's list format: "0-3,8", "" for the empty set, surrounding white space ignored.
  /// INVALID_ARGUMENT names the part that cannot be read.
  static Result<IndexSet> parse(std::string_view list) {
    auto words = detail::parse_index_list(list);
    if (!words) return words.error();
    return from_words(std::move(*words));
  }

  static IndexSet from_words(Words words) {
    IndexSet set;
    set.words_ = std::move(words);
    set.trim();
    return set;
  }

  /// All indices from `first` to `last`, both included.
  static IndexSet range(std::uint32_t first, std::uint32_t last) {
    IndexSet set;
    for (std::uint32_t index = first; index <= last; ++index) set.insert(index);
    return set;
  }

  const Words& words() const { return words_; }
  bool empty() const { return words_.empty(); }

  std::size_t size() const {
    std::size_t count = 0;
    for (std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }

  bool contains(std::uint32_t index) const {
    const std::size_t word = index / 64;
    return word < words_.size() && ((words_[word] >> (index % 64)) & 1U) != 0;
  }

  void insert(std::uint32_t index) {
    const std::size_t word = index / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= std::uint64_t{1} << (index % 64);
  }

  void erase(std::uint32_t index) {
    const std::size_t word = index / 64;
    if (word >= words_.size()) return;
    words_[word] &= ~(std::uint64_t{1} << (index % 64));
    trim();
  }

  /// The lowest index; the set must not be empty.
  std::uint32_t first() const { return *begin(); }

  bool intersects(const IndexSet& other) const {
    const std::size_t shared = std::min(words_.size(), other.words_.size());
    for (std::size_t i = 0; i < shared; ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }

  bool is_subset_of(const IndexSet& other) const { return (*this - other).empty(); }

  IndexSet& operator|=(const IndexSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  IndexSet& operator&=(const IndexSet& other) {
    if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    trim();
    return *this;
  }
  IndexSet& operator-=(const IndexSet& other) {
    const std::size_t shared = std::min(words_.size(), other.words_.size());
    for (std::size_t i = 0; i < shared; ++i) words_[i] &= ~other.words_[i];
    trim();
    return *this;
  }
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  /// The kernel's list format, "0-3,8"; "" when empty.
  std::string to_string() const { return detail::format_index_list(words_); }

  /// Visits the indices in ascending order.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::uint32_t*;
    using reference = std::uint32_t;

    Iterator() = default;
    Iterator(const Words* words, std::size_t word) : words_(words), word_(word) {
      if (word_ < words_->size()) remaining_bits_ = (*words_)[word_];
      skip_empty_words();
    }
    std::uint32_t operator*() const {
      return static_cast<std::uint32_t>(word_ * 64 + static_cast<std::size_t>(std::countr_zero(remaining_bits_)));
    }
    Iterator& operator++() {
      remaining_bits_ &= remaining_bits_ - 1;
      skip_empty_words();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.word_ == b.word_ && a.remaining_bits_ == b.remaining_bits_;
    }

   private:
    void skip_empty_words() {
      while (remaining_bits_ == 0 && word_ < words_->size()) {
        ++word_;
        remaining_bits_ = word_ < words_->size() ? (*words_)[word_] : 0;
      }
    }
    const Words* words_ = nullptr;
    std::size_t word_ = 0;
    std::uint64_t remaining_bits_ = 0;
  };
  Iterator begin() const { return Iterator(&words_, 0); }
  Iterator end() const { return Iterator(&words_, words_.size()); }

 private:
  void trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }
  Words words_;
};

using CpuSet = IndexSet<struct CpuTag>;
using NodeSet = IndexSet<struct NodeTag>;

}  // namespace topolet
