// How a policy reads its inputs: strings, sets and arrays of the ABI as C++ values. See <topolet/policy.hpp>.
#pragma once

#include <topolet/abi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::sdk {

inline std::string_view text(topolet_str string) {
  return string.len == 0 ? std::string_view() : std::string_view(string.ptr, string.len);
}
constexpr topolet_str borrow(std::string_view string) { return {string.data(), string.size()}; }

/// Calls `visit` with every OS index in the set, in ascending order, without a copy.
template <class Visit>
void for_each_index(topolet_set set, Visit visit) {
  for (std::size_t i = 0; i < set.count; ++i) {
    for (std::uint64_t rest = set.words[i]; rest != 0; rest &= rest - 1) {
      visit(static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
    }
  }
}

/// The set in the kernel's list format, "0-3,8", without a copy. Empty for an empty set.
inline std::string to_list(topolet_set set) {
  std::string list;
  const auto append = [&list](std::uint32_t index) {
    std::array<char, 10> digits;
    list.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), index).ptr);
  };
  const auto end = static_cast<std::uint32_t>(set.count * 64);
  for (std::uint32_t first = 0; first < end; ++first) {
    if (set.words[first / 64] >> (first % 64) == 0) {
      first |= 63U;
      continue;
    }
    if (topolet_set_has(set, first) == 0) continue;
    std::uint32_t last = first;
    while (topolet_set_has(set, last + 1) != 0) ++last;
    if (!list.empty()) list += ',';
    append(first);
    if (last > first) list += '-', append(last);
    first = last;
  }
  return list;
}

/// A set of OS indices that owns its storage; converts from and to topolet_set. A plain value.
class Set {
 public:
  Set() = default;
  Set(topolet_set set) : words_(set.words, set.words + set.count) {}  // NOLINT(google-explicit-constructor)

  /// Valid until the set changes or is destroyed.
  topolet_set view() const { return {words_.data(), words_.size()}; }

  bool has(std::uint32_t index) const { return topolet_set_has(view(), index) != 0; }
  void insert(std::uint32_t index) {
    if (words_.size() <= index / 64) words_.resize(index / 64 + 1);
    words_[index / 64] |= std::uint64_t{1} << (index % 64);
  }
  std::size_t size() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }
  /// Ascending.
  std::vector<std::uint32_t> indices() const {
    std::vector<std::uint32_t> all;
    for_each_index(view(), [&all](std::uint32_t index) { all.push_back(index); });
    return all;
  }
  /// The kernel's list format, "0-3,8".
  std::string to_string() const { return to_list(view()); }

  Set& operator&=(const Set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
    return *this;
  }
  Set& operator|=(const Set& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  Set& operator-=(const Set& other) {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend Set operator&(Set a, const Set& b) { return a &= b; }
  friend Set operator|(Set a, const Set& b) { return a |= b; }
  friend Set operator-(Set a, const Set& b) { return a -= b; }
  friend bool operator==(const Set& a, const Set& b) { return (a - b).empty() && (b - a).empty(); }

 private:
  std::vector<std::uint64_t> words_;
};

/// How many indices a set has, without a copy.
inline std::size_t size_of(topolet_set set) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < set.count; ++i) count += static_cast<std::size_t>(std::popcount(set.words[i]));
  return count;
}

/// How many indices are in both sets, without a copy.
inline std::size_t size_of_both(topolet_set a, topolet_set b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.count, b.count); ++i) {
    count += static_cast<std::size_t>(std::popcount(a.words[i] & b.words[i]));
  }
  return count;
}

/// An array of the ABI whose elements lie a stride apart, for range-based loops and indexing.
template <class T>
class Array {
 public:
  Array(const T* items, std::uint32_t count, std::uint32_t stride) : items_(items), count_(count), stride_(stride) {}

  std::size_t size() const { return count_; }
  const T& operator[](std::size_t i) const { return *TOPOLET_AT(T, items_, stride_, i); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator(const Array* array, std::size_t i) : array_(array), i_(i) {}
    const T& operator*() const { return (*array_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.i_ == b.i_; }

   private:
    const Array* array_;
    std::size_t i_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, count_}; }

 private:
  const T* items_;
  std::uint32_t count_;
  std::uint32_t stride_;
};

inline Array<topolet_candidate> candidates(const topolet_request& request) {
  return {request.candidates, request.candidate_count, request.candidate_stride};
}
inline Array<topolet_pu> pus(const topolet_topology& topology) {
  return {topology.pus, topology.pu_count, topology.pu_stride};
}
inline Array<topolet_node> nodes(const topolet_topology& topology) {
  return {topology.nodes, topology.node_count, topology.node_stride};
}
inline Array<topolet_ledger_entry> entries(const topolet_ledger& ledger) {
  return {ledger.entries, ledger.entry_count, ledger.entry_stride};
}
/// By position in the topology's nodes.
inline Array<topolet_node_demand> node_demands(const topolet_ledger& ledger) {
  return {ledger.node_demands, ledger.node_demand_count, ledger.node_demand_stride};
}
inline Array<topolet_domain> domains(const topolet_topology& topology) {
  return {topology.domains, topology.domain_count, topology.domain_stride};
}
inline Array<topolet_cpu_kind> cpu_kinds(const topolet_topology& topology) {
  return {topology.cpu_kinds, topology.cpu_kind_count, topology.cpu_kind_stride};
}
inline Array<topolet_cache> caches(const topolet_topology& topology) {
  return {topology.caches, topology.cache_count, topology.cache_stride};
}
inline Array<topolet_pci_bridge> pci_bridges(const topolet_topology& topology) {
  return {topology.pci_bridges, topology.pci_bridge_count, topology.pci_bridge_stride};
}
inline Array<topolet_pci_device> pci_devices(const topolet_topology& topology) {
  return {topology.pci_devices, topology.pci_device_count, topology.pci_device_stride};
}
inline Array<topolet_os_device> os_devices(const topolet_topology& topology) {
  return {topology.os_devices, topology.os_device_count, topology.os_device_stride};
}

/// How many threads a core has, as the kubelet counts: online CPUs divided by cores, rounded down, at least 1. A CPU
/// whose core is unknown is a core of its own. On machines with cores of different sizes it is an average.
inline std::size_t threads_per_core(const topolet_topology& topology) {
  std::vector<bool> seen(topology.core_count);
  std::size_t cores = 0;
  for (const topolet_pu& pu : pus(topology)) {
    if (pu.core < seen.size()) {
      if (seen[pu.core]) continue;
      seen[pu.core] = true;
    }
    ++cores;
  }
  return cores == 0 ? 1 : std::max<std::size_t>(1, topology.pu_count / cores);
}

/// All CPUs that any candidate of the request has: `set` is &topolet_candidate::cpus for the allowed CPUs or
/// &topolet_candidate::free for those that are in the pool.
inline Set union_of_candidates(const topolet_request& request, topolet_set topolet_candidate::*set) {
  Set all;
  for (const topolet_candidate& candidate : candidates(request)) all |= Set(candidate.*set);
  return all;
}

/// The last value of a key; nothing if the key is not there.
inline std::optional<std::string_view> find_value(topolet_kvs pairs, std::string_view key) {
  for (std::size_t i = pairs.count; i > 0; --i) {
    if (text(pairs.items[i - 1].key) == key) return text(pairs.items[i - 1].value);
  }
  return std::nullopt;
}

/// The last value of a key; empty if the key is not there.
inline std::string_view value_of(topolet_kvs pairs, std::string_view key) {
  return find_value(pairs, key).value_or(std::string_view());
}

/// The values of the options that a policy is created with.
class Options {
 public:
  explicit Options(topolet_kvs values, topolet_kvs others = {nullptr, 0}) : values_(values), others_(others) {}
  /// The value of an option in the plugin's table; empty for a name that is not in the table.
  std::string_view operator[](std::string_view name) const { return value_of(values_, name); }
  /// The value of another plugin's option, "ID.OPTION", or of "placement.min-shared-cpus"; empty if that
  /// plugin is not enabled or has no such option.
  std::string_view of_other(std::string_view name) const { return value_of(others_, name); }

 private:
  topolet_kvs values_;
  topolet_kvs others_;
};

}  // namespace topolet::sdk
