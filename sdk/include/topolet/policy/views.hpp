// What a policy reads: strings, sets and arrays of the ABI as C++ values. See <topolet/policy.hpp>.
#pragma once

#include <topolet/abi.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::sdk {

inline std::string_view text(topolet_str string) {
  return string.len == 0 ? std::string_view() : std::string_view(string.ptr, string.len);
}
inline topolet_str borrow(std::string_view string) { return {string.data(), string.size()}; }

/// A set of OS indices of one's own; reads and makes topolet_set. A plain value.
class Set {
 public:
  Set() = default;
  Set(topolet_set set) : words_(set.words, set.words + set.count) {}  // NOLINT(google-explicit-constructor)

  /// Borrowed until the set changes or goes.
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
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        all.push_back(static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
      }
    }
    return all;
  }
  /// The kernel's list format, "0-3,8".
  std::string to_string() const {
    std::string list;
    const std::vector<std::uint32_t> all = indices();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t first = i;
      while (i + 1 < all.size() && all[i + 1] == all[i] + 1) ++i;
      if (!list.empty()) list += ',';
      list += std::to_string(all[first]);
      if (i > first) list += '-' + std::to_string(all[i]);
    }
    return list;
  }

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

/// Number of indices in a set, without a copy.
inline std::size_t size_of(topolet_set set) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < set.count; ++i) count += static_cast<std::size_t>(std::popcount(set.words[i]));
  return count;
}

/// Number of indices in both, without a copy.
inline std::size_t size_of_both(topolet_set a, topolet_set b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(a.count, b.count); ++i) {
    count += static_cast<std::size_t>(std::popcount(a.words[i] & b.words[i]));
  }
  return count;
}

/// An array with a stride, to loop over.
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
/// By position in the topology's nodes.
inline Array<topolet_node_demand> node_demands(const topolet_ledger& ledger) {
  return {ledger.node_demands, ledger.node_demand_count, ledger.node_demand_stride};
}

/// The last value of a key; empty if there is none.
inline std::string_view value_of(topolet_kvs pairs, std::string_view key) {
  for (std::size_t i = pairs.count; i > 0; --i) {
    if (text(pairs.items[i - 1].key) == key) return text(pairs.items[i - 1].value);
  }
  return {};
}

/// The option values a policy is made with.
class Options {
 public:
  explicit Options(topolet_kvs values, topolet_kvs others = {nullptr, 0}) : values_(values), others_(others) {}
  /// The value of an option of the table; empty for a name that is not in it.
  std::string_view operator[](std::string_view name) const { return value_of(values_, name); }
  /// The value of another plugin's option, "ID.OPTION", or of "placement.min-shared-cpus"; empty if that plugin is not
  /// enabled or has no such option.
  std::string_view of_other(std::string_view name) const { return value_of(others_, name); }

 private:
  topolet_kvs values_;
  topolet_kvs others_;
};

}  // namespace topolet::sdk
