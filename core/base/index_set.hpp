// Sets of OS indices: CPUs (PUs) and NUMA nodes, of any number and as sparse as the machine numbers them.
#pragma once

#include <topolet/policy/set_words.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.hpp"

namespace topolet {

/// The operations on 64-bit words that IndexSet is made of.
namespace set_words = sdk::set_words;

/// The largest OS index a list may name; beyond what Linux allows (CONFIG_NR_CPUS is at most 8192), small enough that
/// a mistyped list cannot ask for much memory.
inline constexpr std::uint32_t kMaxOsIndex = 65535;

namespace detail {

Result<set_words::Words> parse_index_list(std::string_view list);

}  // namespace detail

/// A set of OS indices as 64-bit words, lowest first, without trailing zero words, so that equal sets compare equal.
/// `Tag` keeps CPUs and nodes apart. A plain value; not synchronised.
template <class Tag>
class IndexSet {
 public:
  using Words = set_words::Words;

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
  std::size_t size() const { return set_words::count(words_); }
  bool contains(std::uint32_t index) const { return set_words::contains(words_, index); }

  void insert(std::uint32_t index) { set_words::insert(words_, index); }
  void erase(std::uint32_t index) {
    set_words::erase(words_, index);
    trim();
  }

  /// The lowest index; the set must not be empty.
  std::uint32_t first() const { return *begin(); }

  bool intersects(const IndexSet& other) const { return set_words::intersects(words_, other.words_); }
  bool is_subset_of(const IndexSet& other) const { return set_words::is_subset(words_, other.words_); }

  IndexSet& operator|=(const IndexSet& other) {
    set_words::unite(words_, other.words_);
    return *this;
  }
  IndexSet& operator&=(const IndexSet& other) {
    set_words::intersect(words_, other.words_);
    trim();
    return *this;
  }
  IndexSet& operator-=(const IndexSet& other) {
    set_words::subtract(words_, other.words_);
    trim();
    return *this;
  }
  friend IndexSet operator|(IndexSet a, const IndexSet& b) { return a |= b; }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) { return a &= b; }
  friend IndexSet operator-(IndexSet a, const IndexSet& b) { return a -= b; }
  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  /// The kernel's list format, "0-3,8"; "" when empty.
  std::string to_string() const { return set_words::to_list(words_); }

  /// Visits the indices in ascending order; valid until the set changes.
  using Iterator = set_words::Iterator;
  Iterator begin() const { return set_words::begin(words_); }
  Iterator end() const { return set_words::end(words_); }

 private:
  void trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }
  Words words_;
};

using CpuSet = IndexSet<struct CpuTag>;
using NodeSet = IndexSet<struct NodeTag>;

}  // namespace topolet
