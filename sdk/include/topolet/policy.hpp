// A policy plugin in C++20 over <topolet/abi.h>, header only: views of the request, sinks for the answers, and the
// barrier that no exception crosses. See TOPOLET_PLUGIN at the end.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/score.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
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

/// The option values a policy is made with.
class Options {
 public:
  explicit Options(topolet_kvs values) : values_(values) {}
  /// The value of an option of the table; empty for a name that is not in it.
  std::string_view operator[](std::string_view name) const {
    for (std::size_t i = 0; i < values_.count; ++i) {
      if (text(values_.items[i].key) == name) return text(values_.items[i].value);
    }
    return {};
  }

 private:
  topolet_kvs values_;
};

/// Where a policy's score() answers. Candidates it says nothing on are abstained from.
class Scores {
 public:
  explicit Scores(const topolet_score_sink& sink) : sink_(sink) {}
  void score(std::size_t candidate, std::int32_t score, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_SCORE, score, borrow(reason));
  }
  void reject(std::size_t candidate, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_REJECT, 0, borrow(reason));
  }

 private:
  const topolet_score_sink& sink_;
};

/// Where a policy's pick() answers. Nothing said means no preference.
class Picks {
 public:
  explicit Picks(const topolet_pick_sink& sink) : sink_(sink) {}
  void narrow(topolet_set cpus) { sink_.narrow(&sink_, cpus); }
  void withhold(topolet_set cpus) { sink_.withhold(&sink_, cpus); }
  void order(const std::vector<std::uint32_t>& os_indices) {
    sink_.order(&sink_, os_indices.data(), os_indices.size());
  }
  void reason(std::string_view why) { sink_.reason(&sink_, borrow(why)); }

 private:
  const topolet_pick_sink& sink_;
};

/// Made from its options; may throw, then the plugin is not started and what() says why.
template <class P>
concept Policy = std::constructible_from<P, const Options&>;

/// score() gives its opinion on each candidate.
template <class P>
concept ScoringPolicy = Policy<P> && requires(P& policy, const topolet_request& request, Scores& scores) {
  policy.score(request, scores);
};

/// pick() says which CPUs of the winning candidate to use.
template <class P>
concept PickingPolicy = Policy<P> && requires(P& policy, const topolet_pick_request& request, Picks& picks) {
  policy.pick(request, picks);
};

namespace detail {

/// Runs `call`; what it throws goes to `sink`, in words.
template <class Sink, class Report, class Call>
std::int32_t stop_exceptions(const Sink* sink, Report report, Call call) noexcept {
  try {
    call();
    return TOPOLET_OK;
  } catch (const std::exception& exception) {
    report(sink, borrow(exception.what()));
  } catch (...) {
    report(sink, borrow("something that is not a std::exception"));
  }
  return TOPOLET_THREW;
}

template <Policy P>
struct Instance {
  explicit Instance(const Options& options) : policy(options) {}

  static P& policy_of(const topolet_instance* instance) { return static_cast<Instance*>(instance->context)->policy; }

  static const void* get_capability(const topolet_instance*, topolet_str id) {
    if constexpr (ScoringPolicy<P>) {
      static constexpr topolet_score kScore = {sizeof(topolet_score), 0, &Instance::score};
      if (text(id) == TOPOLET_SCORE_ID) return &kScore;
    }
    if constexpr (PickingPolicy<P>) {
      static constexpr topolet_pick kPick = {sizeof(topolet_pick), 0, &Instance::pick};
      if (text(id) == TOPOLET_PICK_ID) return &kPick;
    }
    return nullptr;
  }

  static std::int32_t score(const topolet_instance* instance, const topolet_request* request,
                            const topolet_score_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] {
      Scores scores(*sink);
      policy_of(instance).score(*request, scores);
    });
  }

  static std::int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                           const topolet_pick_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] {
      Picks picks(*sink);
      policy_of(instance).pick(*request, picks);
    });
  }

  static void destroy(const topolet_instance* instance) noexcept { delete static_cast<Instance*>(instance->context); }

  topolet_instance view{sizeof(topolet_instance), 0, this, &get_capability, &destroy};
  P policy;
};

template <class P>
std::int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                    const topolet_instance** instance) noexcept {
  static_assert(Policy<P>, "a policy needs a constructor that takes const topolet::sdk::Options&");
  static_assert(ScoringPolicy<P> || PickingPolicy<P>,
                "a policy needs score(const topolet_request&, topolet::sdk::Scores&) or "
                "pick(const topolet_pick_request&, topolet::sdk::Picks&)");
  const std::int32_t status =
      stop_exceptions(error, error->set, [&] { *instance = &(new Instance<P>(Options(request->options)))->view; });
  return status == TOPOLET_OK ? TOPOLET_OK : TOPOLET_FAILED;
}

}  // namespace detail
}  // namespace topolet::sdk

/// Makes a plugin of a policy class. Once per plugin, in no namespace. `id` and `version` are string literals, `table`
/// a constant std::array<topolet_option, N>.
#define TOPOLET_PLUGIN(PolicyClass, id, version, table)                                                 \
  constinit const topolet_plugin_entry topolet_plugin_v1 = {sizeof(topolet_plugin_entry),               \
                                                            TOPOLET_ABI_MINOR,                          \
                                                            TOPOLET_ABI_DRAFT,                          \
                                                            0,                                          \
                                                            TOPOLET_STR(id),                            \
                                                            TOPOLET_STR(version),                       \
                                                            (table).data(),                             \
                                                            static_cast<std::uint32_t>((table).size()), \
                                                            sizeof(topolet_option),                     \
                                                            &::topolet::sdk::detail::create<PolicyClass>}
