// A policy plugin in C++20 over <topolet/abi.h>, header only: views of the request, sinks for the answers, and the
// barrier that no exception crosses. See TOPOLET_PLUGIN at the end.
#pragma once

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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
  /// The value of another plugin's option, "ID.OPTION"; empty if that plugin is not enabled or has no such option.
  std::string_view of_other(std::string_view name) const { return value_of(others_, name); }

 private:
  topolet_kvs values_;
  topolet_kvs others_;
};

/// Where a policy's score() answers. Candidates it says nothing on are abstained from.
class Scores {
 public:
  explicit Scores(const topolet_score_sink& sink) : sink_(sink) {}
  void score(std::size_t candidate, std::int32_t score, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_SCORE, score, borrow(reason));
  }
  /// No opinion, said with a reason.
  void abstain(std::size_t candidate, std::string_view reason) {
    sink_.set(&sink_, static_cast<std::uint32_t>(candidate), TOPOLET_VERDICT_ABSTAIN, 0, borrow(reason));
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
  /// What the policy is for and cannot be had here.
  void unmet(std::string_view what) {
    if (TOPOLET_HAS(&sink_, unmet)) sink_.unmet(&sink_, borrow(what));
  }
  /// Take `count` or more of these, as far as that can be. May be said several times.
  void at_least(topolet_set cpus, std::size_t count) {
    if (TOPOLET_HAS(&sink_, at_least)) sink_.at_least(&sink_, cpus, static_cast<std::uint32_t>(count));
  }
  /// The chosen CPUs will not do.
  void reject(std::string_view reason) {
    if (TOPOLET_HAS(&sink_, reject)) sink_.reject(&sink_, borrow(reason));
  }

 private:
  const topolet_pick_sink& sink_;
};

/// Where a policy's adjust() answers. Nothing said leaves all as it is.
class Adjustments {
 public:
  explicit Adjustments(const topolet_adjust_sink& sink) : sink_(sink) {}
  void mems(topolet_set nodes) { sink_.mems(&sink_, nodes); }
  void env(std::string_view name, std::string_view value) { sink_.env(&sink_, borrow(name), borrow(value)); }
  void annotation(std::string_view key, std::string_view value) {
    sink_.annotation(&sink_, borrow(key), borrow(value));
  }
  void reason(std::string_view why) { sink_.reason(&sink_, borrow(why)); }

 private:
  const topolet_adjust_sink& sink_;
};

/// Where a policy's tick() puts its wishes.
class Wishes {
 public:
  explicit Wishes(const topolet_tick_sink& sink) : sink_(sink) {}
  /// `entry`: position in the ledger's entries.
  void replace(std::size_t entry, std::string_view reason) { ask(entry, 0, reason); }
  void replace_on_other_nodes(std::size_t entry, std::string_view reason) { ask(entry, 1, reason); }

 private:
  void ask(std::size_t entry, std::uint32_t move_nodes, std::string_view reason) {
    sink_.replace(&sink_, static_cast<std::uint32_t>(entry), move_nodes, borrow(reason));
  }
  const topolet_tick_sink& sink_;
};

/// The host's side, from the policy's constructor to its destructor. A small value to keep.
class Host {
 public:
  explicit Host(const topolet_host* host)
      : host_(host),
        log_(capability<topolet_log>(TOPOLET_LOG_ID)),
        state_(capability<topolet_state>(TOPOLET_STATE_ID)) {}

  void log(topolet_log_level level, std::string_view message) const {
    if (log_ != nullptr) log_->write(host_, level, borrow(message));
  }

  /// A saved value; nothing if there is none, or no host that keeps any.
  std::optional<std::string> get(std::string_view key) const {
    return state_ == nullptr ? std::nullopt : read(state_->get, key, TOPOLET_STATE_MAX_VALUE);
  }
  /// All keys, ascending.
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    if (state_ == nullptr) return all;
    while (auto key = read(state_->next, all.empty() ? std::string_view() : all.back(), TOPOLET_STATE_MAX_KEY)) {
      all.push_back(*std::move(key));
    }
    return all;
  }
  /// These two from the constructor, notify() and tick() only. A topolet_status; TOPOLET_FAILED without a state.
  std::int32_t set(std::string_view key, std::string_view value) const {
    return state_ == nullptr ? TOPOLET_FAILED : state_->set(host_, borrow(key), borrow(value));
  }
  std::int32_t remove(std::string_view key) const {
    return state_ == nullptr ? TOPOLET_FAILED : state_->remove(host_, borrow(key));
  }

 private:
  template <class Capability>
  const Capability* capability(std::string_view id) const {
    return host_ == nullptr ? nullptr : static_cast<const Capability*>(host_->get_capability(host_, borrow(id)));
  }

  template <class Read>
  std::optional<std::string> read(Read read_it, std::string_view key, std::size_t capacity) const {
    std::string bytes(capacity, '\0');
    std::size_t size = 0;
    if (read_it(host_, borrow(key), bytes.data(), capacity, &size) != TOPOLET_OK) return std::nullopt;
    bytes.resize(size);
    return bytes;
  }

  const topolet_host* host_;
  const topolet_log* log_;
  const topolet_state* state_;
};

/// Made from its options, or from its options and the host; may throw, then the plugin is not started and what() says
/// why.
template <class P>
concept Policy = std::constructible_from<P, const Options&> || std::constructible_from<P, const Options&, const Host&>;

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

/// adjust() says what else to set, once the CPUs are chosen.
template <class P>
concept AdjustingPolicy = Policy<P> &&
    requires(P& policy, const topolet_adjust_request& request, Adjustments& adjustments) {
  policy.adjust(request, adjustments);
};

/// notify() hears what became of containers.
template <class P>
concept ListeningPolicy = Policy<P> && requires(P& policy, const topolet_event& event) {
  policy.notify(event);
};

/// tick() looks at the machine every interval_ms() milliseconds.
template <class P>
concept TickingPolicy = Policy<P> && requires(P& policy, const topolet_tick_request& request, Wishes& wishes) {
  { policy.interval_ms() } -> std::convertible_to<std::uint32_t>;
  policy.tick(request, wishes);
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

// A class that has a member of this name, whatever its form. The name is looked up together with one of the same name
// in another base, so that it is ambiguous, and the expression ill-formed, exactly if the policy has one.
#define TOPOLET_DETAIL_NAMES(name)       \
  struct Has_##name {                    \
    int name;                            \
  };                                     \
  template <class P>                     \
  struct With_##name : P, Has_##name {}; \
  template <class P>                     \
  concept names_##name = !requires {     \
    &With_##name<P>::name;               \
  }
TOPOLET_DETAIL_NAMES(score);
TOPOLET_DETAIL_NAMES(pick);
TOPOLET_DETAIL_NAMES(adjust);
TOPOLET_DETAIL_NAMES(notify);
TOPOLET_DETAIL_NAMES(tick);
#undef TOPOLET_DETAIL_NAMES

/// Says in words what is wrong with a policy class. Asked of classes that can be derived from.
template <class P>
constexpr bool check_methods() {
  static_assert(!names_score<P> || ScoringPolicy<P>,
                "score() must be callable as score(const topolet_request&, topolet::sdk::Scores&)");
  static_assert(!names_pick<P> || PickingPolicy<P>,
                "pick() must be callable as pick(const topolet_pick_request&, topolet::sdk::Picks&)");
  static_assert(!names_adjust<P> || AdjustingPolicy<P>,
                "adjust() must be callable as adjust(const topolet_adjust_request&, topolet::sdk::Adjustments&)");
  static_assert(!names_notify<P> || ListeningPolicy<P>, "notify() must be callable as notify(const topolet_event&)");
  static_assert(!names_tick<P> || TickingPolicy<P>,
                "tick() must be callable as tick(const topolet_tick_request&, topolet::sdk::Wishes&), beside a method "
                "interval_ms() that returns std::uint32_t");
  return true;
}

template <Policy P>
struct Instance {
  Instance(const Options& options, const Host& host) : policy(make(options, host)) {
    if constexpr (TickingPolicy<P>) ticks.interval_ms = policy.interval_ms();
  }

  static P make(const Options& options, const Host& host) {
    if constexpr (std::constructible_from<P, const Options&, const Host&>) {
      return P(options, host);
    } else {
      return P(options);
    }
  }

  static P& policy_of(const topolet_instance* instance) { return static_cast<Instance*>(instance->context)->policy; }

  static const void* get_capability([[maybe_unused]] const topolet_instance* instance, topolet_str id) {
    if constexpr (ScoringPolicy<P>) {
      static constexpr topolet_score kScore = {sizeof(topolet_score), 0, &Instance::score};
      if (text(id) == TOPOLET_SCORE_ID) return &kScore;
    }
    if constexpr (PickingPolicy<P>) {
      static constexpr topolet_pick kPick = {sizeof(topolet_pick), 0, &Instance::pick};
      if (text(id) == TOPOLET_PICK_ID) return &kPick;
    }
    if constexpr (AdjustingPolicy<P>) {
      static constexpr topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, &Instance::adjust};
      if (text(id) == TOPOLET_ADJUST_ID) return &kAdjust;
    }
    if constexpr (ListeningPolicy<P>) {
      static constexpr topolet_events kEvents = {sizeof(topolet_events), 0, &Instance::notify};
      if (text(id) == TOPOLET_EVENTS_ID) return &kEvents;
    }
    if constexpr (TickingPolicy<P>) {
      if (text(id) == TOPOLET_TICK_ID) return &static_cast<Instance*>(instance->context)->ticks;
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

  static std::int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                             const topolet_adjust_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] {
      Adjustments adjustments(*sink);
      policy_of(instance).adjust(*request, adjustments);
    });
  }

  static std::int32_t notify(const topolet_instance* instance, const topolet_event* event,
                             const topolet_event_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] { policy_of(instance).notify(*event); });
  }

  static std::int32_t tick(const topolet_instance* instance, const topolet_tick_request* request,
                           const topolet_tick_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] {
      Wishes wishes(*sink);
      policy_of(instance).tick(*request, wishes);
    });
  }

  static constexpr topolet_tick ticks_of() {
    if constexpr (TickingPolicy<P>) {
      return {sizeof(topolet_tick), 0, &Instance::tick};
    } else {
      return {};
    }
  }

  static void destroy(const topolet_instance* instance) noexcept { delete static_cast<Instance*>(instance->context); }

  topolet_instance view{sizeof(topolet_instance), 0, this, &get_capability, &destroy};
  topolet_tick ticks = ticks_of();
  P policy;
};

template <class P>
constexpr std::uint32_t default_weight_of() {
  if constexpr (requires { P::kDefaultWeight; }) {
    static_assert(P::kDefaultWeight > 0 && P::kDefaultWeight <= TOPOLET_WEIGHT_MAX, "weights are 1 to 1000");
    return P::kDefaultWeight;
  } else {
    return 0;
  }
}

template <class P>
std::int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                    const topolet_instance** instance) noexcept {
  static_assert(Policy<P>,
                "a policy needs a constructor that takes const topolet::sdk::Options&, or that and const "
                "topolet::sdk::Host&");
  if constexpr (!std::is_final_v<P>) static_assert(check_methods<P>());
  static_assert(ScoringPolicy<P> || PickingPolicy<P> || AdjustingPolicy<P> || ListeningPolicy<P> || TickingPolicy<P>,
                "a policy needs score(const topolet_request&, topolet::sdk::Scores&) or "
                "pick(const topolet_pick_request&, topolet::sdk::Picks&), or one of adjust, notify and tick");
  const topolet_kvs others = TOPOLET_HAS(request, others) ? request->others : topolet_kvs{nullptr, 0};
  const std::int32_t status = stop_exceptions(error, error->set, [&] {
    *instance = &(new Instance<P>(Options(request->options, others), Host(request->host)))->view;
  });
  return status == TOPOLET_OK ? TOPOLET_OK : TOPOLET_FAILED;
}

}  // namespace detail
}  // namespace topolet::sdk

/// Makes a plugin of a policy class. Once per plugin, in no namespace. `id` and `version` are string literals, `table`
/// a constant std::array<topolet_option, N>. A class with a `static constexpr std::uint32_t kDefaultWeight` has that
/// weight where the configuration names none; others have 1.
#define TOPOLET_PLUGIN(PolicyClass, id, version, table)                                                               \
  constinit const topolet_plugin_entry topolet_plugin_v1 = {sizeof(topolet_plugin_entry),                             \
                                                            TOPOLET_ABI_MINOR,                                        \
                                                            TOPOLET_ABI_DRAFT,                                        \
                                                            ::topolet::sdk::detail::default_weight_of<PolicyClass>(), \
                                                            TOPOLET_STR(id),                                          \
                                                            TOPOLET_STR(version),                                     \
                                                            (table).data(),                                           \
                                                            static_cast<std::uint32_t>((table).size()),               \
                                                            sizeof(topolet_option),                                   \
                                                            &::topolet::sdk::detail::create<PolicyClass>}
