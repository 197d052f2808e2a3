// How a policy reads its inputs: strings, sets and arrays of the ABI as C++ values. See <topolet/policy.hpp>.
#pragma once

#include <topolet/abi.h>
#include <topolet/policy/set_words.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace topolet::sdk {

inline std::string_view text(topolet_str string) {
  return string.len == 0 ? std::string_view() : std::string_view(string.ptr, string.len);
}
constexpr topolet_str borrow(std::string_view string) { return {string.data(), string.size()}; }

/// The 64-bit words of a set, for the functions of <topolet/policy/set_words.hpp>.
constexpr set_words::WordsView words_of(topolet_set set) { return {set.words, set.count}; }

/// Calls `visit` with every OS index in the set, in ascending order, without a copy.
template <class Visit>
void for_each_index(topolet_set set, Visit visit) {
  set_words::for_each(words_of(set), visit);
}

/// The set in the kernel's list format, "0-3,8", without a copy. Empty for an empty set.
inline std::string to_list(topolet_set set) { return set_words::to_list(words_of(set)); }

/// A set of OS indices that owns its storage; converts from and to topolet_set. A plain value.
class Set {
 public:
  Set() = default;
  Set(topolet_set set) : words_(set.words, set.words + set.count) {}  // NOLINT(google-explicit-constructor)
  explicit Set(set_words::Words words) : words_(std::move(words)) {}

  /// Valid until the set changes or is destroyed.
  topolet_set view() const { return {words_.data(), words_.size()}; }

  bool has(std::uint32_t index) const { return set_words::contains(words_, index); }
  void insert(std::uint32_t index) { set_words::insert(words_, index); }
  std::size_t size() const { return set_words::count(words_); }
  bool empty() const { return set_words::is_empty(words_); }
  /// Ascending.
  std::vector<std::uint32_t> indices() const { return {set_words::begin(words_), set_words::end(words_)}; }
  /// The kernel's list format, "0-3,8".
  std::string to_string() const { return set_words::to_list(words_); }

  Set& operator&=(topolet_set other) {
    set_words::intersect(words_, words_of(other));
    return *this;
  }
  Set& operator|=(topolet_set other) {
    set_words::unite(words_, words_of(other));
    return *this;
  }
  Set& operator-=(topolet_set other) {
    set_words::subtract(words_, words_of(other));
    return *this;
  }
  Set& operator&=(const Set& other) { return *this &= other.view(); }
  Set& operator|=(const Set& other) { return *this |= other.view(); }
  Set& operator-=(const Set& other) { return *this -= other.view(); }
  friend Set operator&(Set a, const Set& b) { return a &= b; }
  friend Set operator|(Set a, const Set& b) { return a |= b; }
  friend Set operator-(Set a, const Set& b) { return a -= b; }
  friend bool operator==(const Set& a, const Set& b) {
    return set_words::is_subset(a.words_, b.words_) && set_words::is_subset(b.words_, a.words_);
  }

 private:
  set_words::Words words_;
};

/// How many indices a set has, without a copy.
inline std::size_t size_of(topolet_set set) { return set_words::count(words_of(set)); }

/// How many indices are in both sets, without a copy.
inline std::size_t size_of_both(topolet_set a, topolet_set b) {
  return set_words::count_both(words_of(a), words_of(b));
}

/// A set of which only the words from the first to the last that is not zero are looked at: of all CPUs of a large
/// machine, those of one node lie in a few words. Borrows the words.
class NarrowSet {
 public:
  NarrowSet() = default;
  explicit NarrowSet(topolet_set set) {
    set_words::WordsView words = words_of(set);
    while (!words.empty() && words.back() == 0) words = words.first(words.size() - 1);
    while (first_ < words.size() && words[first_] == 0) ++first_;
    words_ = words.subspan(first_);
  }
  std::size_t count_in(topolet_set other) const { return set_words::count_both(words_, at_same_place(other)); }
  bool intersects(topolet_set other) const { return set_words::intersects(words_, at_same_place(other)); }

 private:
  set_words::WordsView at_same_place(topolet_set other) const {
    return words_of(other).subspan(std::min(first_, other.count));
  }

  set_words::WordsView words_;
  std::size_t first_ = 0;
};

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

/// `flag`: one of TOPOLET_REQUEST_….
inline bool has_flag(const topolet_request& request, std::uint32_t flag) { return (request.flags & flag) != 0; }

/// All CPUs that any candidate of the request has: `set` is &topolet_candidate::cpus for the allowed CPUs or
/// &topolet_candidate::usable for those that the container may be given.
inline Set union_of_candidates(const topolet_request& request, topolet_set topolet_candidate::*set) {
  Set all;
  for (const topolet_candidate& candidate : candidates(request)) all |= candidate.*set;
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

/// What a policy is created from: the values of its options, and what else its create() is told.
class Options {
 public:
  explicit Options(topolet_kvs values, topolet_kvs configuration = {nullptr, 0},
                   const topolet_topology* machine = nullptr, std::int32_t purpose = TOPOLET_PURPOSE_RUN,
                   std::chrono::milliseconds deadline = {})
      : values_(values), configuration_(configuration), machine_(machine), purpose_(purpose), deadline_(deadline) {}
  /// The value of an option in the plugin's table; empty for a name that is not in the table.
  std::string_view operator[](std::string_view name) const { return value_of(values_, name); }
  /// Every value of a repeated option, in the order in which they were written.
  std::vector<std::string_view> all(std::string_view name) const { return values_of(values_, name); }

  /// The values of the types that the host checks and simplifies. 0 or empty for a name that is not in the table.
  bool is_set(std::string_view name) const { return (*this)[name] == "true"; }
  std::int64_t integer(std::string_view name) const { return number_from<std::int64_t>((*this)[name]); }
  double number(std::string_view name) const {
    std::istringstream digits{std::string((*this)[name])};
    digits.imbue(std::locale::classic());
    double number = 0;
    digits >> number;
    return number;
  }
  std::chrono::milliseconds milliseconds(std::string_view name) const {
    return std::chrono::milliseconds(integer(name));
  }
  std::int64_t bytes(std::string_view name) const { return integer(name); }
  std::vector<std::string_view> list(std::string_view name) const {
    std::vector<std::string_view> items;
    for (std::string_view rest = (*this)[name]; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      items.push_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return items;
  }
  Set cpus(std::string_view name) const {
    Set set;
    for (const std::string_view range : list(name)) {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const auto first = number_from<std::uint32_t>(range.substr(0, dash));
      const auto last = dash == range.size() ? first : number_from<std::uint32_t>(range.substr(dash + 1));
      for (std::uint32_t cpu = first; cpu <= last && cpu <= 65535; ++cpu) set.insert(cpu);
    }
    return set;
  }

  /// A value of the whole configuration by "SECTION.KEY", such as another plugin's "ID.OPTION" or
  /// "placement.min-shared-cpus", in the simple form of its type; nothing if that plugin is not enabled or there is no
  /// such key. Secrets are never there, the policy's own neither.
  std::optional<std::string_view> configured(std::string_view name) const { return find_value(configuration_, name); }
  /// Every value of a key that may be repeated.
  std::vector<std::string_view> all_configured(std::string_view name) const { return values_of(configuration_, name); }

  /// What the policy is made for, as topolet_purpose: unless TOPOLET_PURPOSE_RUN, it changes nothing outside itself.
  std::int32_t purpose() const { return purpose_; }
  bool is_run() const { return purpose_ == TOPOLET_PURPOSE_RUN; }
  /// How long the constructor may take before it is given up; 0: as long as it likes.
  std::chrono::milliseconds deadline() const { return deadline_; }
  /// The machine as it is when the policy is created, to judge the options by; null where the host does not know it.
  const topolet_topology* machine() const { return machine_; }

 private:
  template <class Number>
  static Number number_from(std::string_view digits) {
    Number number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }
  static std::vector<std::string_view> values_of(topolet_kvs pairs, std::string_view key) {
    std::vector<std::string_view> values;
    for (std::size_t i = 0; i < pairs.count; ++i) {
      if (text(pairs.items[i].key) == key) values.push_back(text(pairs.items[i].value));
    }
    return values;
  }

  topolet_kvs values_;
  topolet_kvs configuration_;
  const topolet_topology* machine_;
  std::int32_t purpose_;
  std::chrono::milliseconds deadline_;
};

}  // namespace topolet::sdk
