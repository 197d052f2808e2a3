// What can be done with sets of OS indices as 64-bit words. It needs no other header of the SDK. See
// <topolet/policy.hpp>.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace topolet::sdk::set_words {

/// Index i is in the set if bit i % 64 of word i / 64 is set, as in topolet_set. Words beyond the end count as zero, so
/// sets of different lengths can be combined, and zero words at the end mean nothing.
using Words = std::vector<std::uint64_t>;
using WordsView = std::span<const std::uint64_t>;

constexpr bool contains(WordsView set, std::size_t index) {
  return index / 64 < set.size() && ((set[index / 64] >> (index % 64)) & 1U) != 0;
}

inline void insert(Words& set, std::size_t index) {
  if (set.size() <= index / 64) set.resize(index / 64 + 1);
  set[index / 64] |= std::uint64_t{1} << (index % 64);
}

inline void erase(Words& set, std::size_t index) {
  if (index / 64 < set.size()) set[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

/// Adds the indices of `other`.
inline void unite(Words& set, WordsView other) {
  if (set.size() < other.size()) set.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) set[i] |= other[i];
}

/// Keeps the indices of `other` only.
inline void intersect(Words& set, WordsView other) {
  if (set.size() > other.size()) set.resize(other.size());
  for (std::size_t i = 0; i < set.size(); ++i) set[i] &= other[i];
}

/// Removes the indices of `other`.
inline void subtract(Words& set, WordsView other) {
  const std::size_t shared = std::min(set.size(), other.size());
  for (std::size_t i = 0; i < shared; ++i) set[i] &= ~other[i];
}

/// How many bits of a word are set. std::popcount() is a call of a library function on the oldest x86-64, which may be
/// all that a plugin is compiled for, and sets are counted often. This is the count by parallel sums of Warren,
/// Hacker's Delight, chapter 5; compilers know it and use an instruction where there is one.
constexpr std::size_t count_bits(std::uint64_t word) {
  if (word == 0) return 0;  // as most words of a small set of CPUs on a large machine
  word -= (word >> 1U) & 0x5555'5555'5555'5555U;
  word = (word & 0x3333'3333'3333'3333U) + ((word >> 2U) & 0x3333'3333'3333'3333U);
  word = (word + (word >> 4U)) & 0x0f0f'0f0f'0f0f'0f0fU;
  return static_cast<std::size_t>((word * 0x0101'0101'0101'0101U) >> 56U);
}

/// How many indices a set has.
constexpr std::size_t count(WordsView set) {
  std::size_t indices = 0;
  for (const std::uint64_t word : set) indices += count_bits(word);
  return indices;
}

/// How many indices are in both sets.
constexpr std::size_t count_both(WordsView a, WordsView b) {
  const std::size_t shared = std::min(a.size(), b.size());
  std::size_t indices = 0;
  for (std::size_t i = 0; i < shared; ++i) indices += count_bits(a[i] & b[i]);
  return indices;
}

constexpr bool is_empty(WordsView set) {
  for (const std::uint64_t word : set) {
    if (word != 0) return false;
  }
  return true;
}

constexpr bool intersects(WordsView a, WordsView b) {
  const std::size_t shared = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if ((a[i] & b[i]) != 0) return true;
  }
  return false;
}

constexpr bool is_subset(WordsView part, WordsView whole) {
  const std::size_t shared = std::min(part.size(), whole.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if ((part[i] & ~whole[i]) != 0) return false;
  }
  return is_empty(part.subspan(shared));
}

/// The 64 bits from `first` on: bit i stands for index `first` + i.
constexpr std::uint64_t word_at(WordsView set, std::size_t first) {
  const std::size_t word = first / 64;
  const std::size_t shift = first % 64;
  if (word >= set.size()) return 0;
  const std::uint64_t low = set[word] >> shift;
  return shift == 0 || word + 1 == set.size() ? low : low | set[word + 1] << (64 - shift);
}

/// Adds the index `first` + i for each bit i of `bits`.
inline void unite_word(Words& set, std::size_t first, std::uint64_t bits) {
  if (bits == 0) return;
  const std::size_t word = first / 64;
  const std::size_t shift = first % 64;
  const std::uint64_t high = shift == 0 ? 0 : bits >> (64 - shift);
  const std::size_t words = word + (high == 0 ? 1 : 2);
  if (set.size() < words) set.resize(words);
  set[word] |= bits << shift;
  if (high != 0) set[word + 1] |= high;
}

/// The lowest of the indices that `bits` of word `word` stand for; there must be one.
constexpr std::uint32_t lowest_index(std::size_t word, std::uint64_t bits) {
  return static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
}

/// Calls `visit` with every index, in ascending order: faster than Iterator where most indices follow each other.
template <class Visit>
constexpr void for_each(WordsView set, Visit visit) {
  for (std::size_t word = 0; word < set.size(); ++word) {
    for (std::uint64_t rest = set[word]; rest != 0; rest &= rest - 1) visit(lowest_index(word, rest));
  }
}

/// Visits the indices of a set in ascending order. Borrows the words.
class Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = std::uint32_t;
  using difference_type = std::ptrdiff_t;
  using pointer = const std::uint32_t*;
  using reference = std::uint32_t;

  Iterator() = default;
  /// Starts at the first index in word `word` or after it; at the end if `word` is the number of words.
  Iterator(WordsView set, std::size_t word) : set_(set), word_(word) {
    if (word_ == set_.size()) return;
    remaining_bits_ = set_[word_];
    skip_empty_words();
  }
  std::uint32_t operator*() const { return lowest_index(word_, remaining_bits_); }
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
    while (remaining_bits_ == 0 && ++word_ < set_.size()) remaining_bits_ = set_[word_];
  }

  WordsView set_;
  std::size_t word_ = 0;
  std::uint64_t remaining_bits_ = 0;
};

inline Iterator begin(WordsView set) { return {set, 0}; }
inline Iterator end(WordsView set) { return {set, set.size()}; }

/// The set in the kernel's list format, "0-3,8". Empty for an empty set.
inline std::string to_list(WordsView set) {
  std::string list;
  const auto append = [&list](std::size_t index) {
    std::array<char, 20> digits;
    list.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), index).ptr);
  };
  std::size_t first = 0;
  std::size_t next = 0;  // behind the last of those that follow each other from `first` on; 0: there are none yet
  const auto append_range = [&] {
    if (next == 0) return;
    if (!list.empty()) list += ',';
    append(first);
    if (next > first + 1) list += '-', append(next - 1);
  };
  for_each(set, [&](std::size_t index) {
    if (next == 0 || index != next) append_range(), first = index;
    next = index + 1;
  });
  append_range();
  return list;
}

}  // namespace topolet::sdk::set_words
