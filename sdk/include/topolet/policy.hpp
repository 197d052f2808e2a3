// What a policy plugin in C++20 needs on top of <topolet/abi.h>, header only: views of the request, sinks for the
// answers, pieces of reasons, and the barrier that stops exceptions. TOPOLET_PLUGIN, at the end, ties them together.
#pragma once

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/codes.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/reads.h>
#include <topolet/score.h>
#include <topolet/tick.h>
#include <topolet/policy/answers.hpp>
#include <topolet/policy/cores.hpp>
#include <topolet/policy/memory.hpp>
#include <topolet/policy/option_table.hpp>
#include <topolet/policy/reasons.hpp>
#include <topolet/policy/views.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

namespace topolet::sdk {

/// A class that is constructed from its options, or from its options and the host. A constructor that throws keeps the
/// plugin from starting; its what() is reported as the cause.
template <class P>
concept Policy = std::constructible_from<P, const Options&> || std::constructible_from<P, const Options&, const Host&>;

/// score() gives the policy's opinion on each candidate.
template <class P>
concept ScoringPolicy = Policy<P> && requires(P& policy, const topolet_request& request, Scores& scores) {
  policy.score(request, scores);
};

/// propose() adds node sets to the candidates of machines with many nodes.
template <class P>
concept ProposingPolicy = Policy<P> && requires(P& policy, const topolet_request& request, Proposals& proposals) {
  policy.propose(request, proposals);
};

/// pick() says which CPUs of the winning candidate the container is to use.
template <class P>
concept PickingPolicy = Policy<P> && requires(P& policy, const topolet_pick_request& request, Picks& picks) {
  policy.pick(request, picks);
};

/// adjust() says what else to set on the container once its CPUs are chosen.
template <class P>
concept AdjustingPolicy = Policy<P> &&
    requires(P& policy, const topolet_adjust_request& request, Adjustments& adjustments) {
  policy.adjust(request, adjustments);
};

/// notify() is told what happens to containers.
template <class P>
concept ListeningPolicy = Policy<P> && requires(P& policy, const topolet_event& event) {
  policy.notify(event);
};

/// tick() is called every interval_ms() milliseconds and may ask for containers to be placed again.
template <class P>
concept TickingPolicy = Policy<P> && requires(P& policy, const topolet_tick_request& request, Wishes& wishes) {
  { policy.interval_ms() } -> std::convertible_to<std::uint32_t>;
  policy.tick(request, wishes);
};

/// kAnnotations, a static constexpr std::array<topolet_str, N>, names the topolet.io/ annotations that the policy
/// reads, without that prefix. Where a policy lacks it, the host cannot tell who misspells an annotation; so a policy
/// that reads none has an empty one.
template <class P>
concept AnnotatedPolicy = Policy<P> && requires {
  { P::kAnnotations.data() } -> std::convertible_to<const topolet_str*>;
  { P::kAnnotations.size() } -> std::convertible_to<std::size_t>;
};

/// kTakingAnnotations, a static constexpr std::array<topolet_kv, N>, names those of them by which a container gets more
/// from others than it requests: {name, the value that does, or empty for any}. The host leaves these out where the
/// pod may not have that.
template <class P>
concept TakingPolicy = AnnotatedPolicy<P> && requires {
  { P::kTakingAnnotations.data() } -> std::convertible_to<const topolet_kv*>;
  { P::kTakingAnnotations.size() } -> std::convertible_to<std::size_t>;
};

/// reads() returns which environment variables and foreign annotations the policy reads. It is called once, when the
/// policy has been made; what it points to must live as long as the policy.
template <class P>
concept ReadingPolicy = Policy<P> && requires(P& policy) {
  { policy.reads() } -> std::convertible_to<topolet_reads>;
};

/// kCodes, a static constexpr std::array<topolet_kv, N>, has the codes that the policy gives its reasons, and what each
/// means: {TOPOLET_STR("no-local-memory"), TOPOLET_STR("The node has too little memory.")}.
template <class P>
concept CodedPolicy = Policy<P> && requires {
  { P::kCodes.data() } -> std::convertible_to<const topolet_kv*>;
  { P::kCodes.size() } -> std::convertible_to<std::size_t>;
};

namespace detail {

/// Runs `call`; if it throws, reports the exception's text to `sink`.
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

// names_NAME: whether a class has a member NAME of any kind. With_NAME inherits the name from a second base, too: if
// the policy has such a member, the name is ambiguous and the expression ill-formed. hides_NAME: whether it has one
// that cannot be named from here, as it is not public.
#define TOPOLET_DETAIL_NAMES(name)                      \
  struct Has_##name {                                   \
    int name;                                           \
  };                                                    \
  template <class P>                                    \
  struct With_##name : P, Has_##name {};                \
  template <class P>                                    \
  concept names_##name = !requires {                    \
    &With_##name<P>::name;                              \
  };                                                    \
  template <class P>                                    \
  concept hides_##name = names_##name<P> && !requires { \
    &P::name;                                           \
  }
TOPOLET_DETAIL_NAMES(score);
TOPOLET_DETAIL_NAMES(propose);
TOPOLET_DETAIL_NAMES(pick);
TOPOLET_DETAIL_NAMES(adjust);
TOPOLET_DETAIL_NAMES(notify);
TOPOLET_DETAIL_NAMES(tick);
TOPOLET_DETAIL_NAMES(kAnnotations);
TOPOLET_DETAIL_NAMES(kTakingAnnotations);
TOPOLET_DETAIL_NAMES(kCodes);
TOPOLET_DETAIL_NAMES(reads);
#undef TOPOLET_DETAIL_NAMES

/// Whether nothing that the host needs of the class is public. Only for classes that are not final, since it derives
/// from them.
template <class P>
concept HiddenPolicy =
    !std::is_final_v<P> && !Policy<P> &&
    (hides_score<P> || hides_propose<P> || hides_pick<P> || hides_adjust<P> || hides_notify<P> || hides_tick<P>);

// Two messages for one member: that it is not public, or else what it must be.
#define TOPOLET_DETAIL_CHECK(name, Concept, message)                                                 \
  static_assert(Concept<P> || !hides_##name<P>, #name " must be public: write `public:` before it"); \
  static_assert(Concept<P> || !names_##name<P> || hides_##name<P>, message)

/// Fails to compile with a readable message if a method of the policy has the wrong signature. Only for classes that
/// are not final, since it derives from them.
template <class P>
constexpr bool check_methods() {
  TOPOLET_DETAIL_CHECK(score, ScoringPolicy,
                       "score() must be callable as score(const topolet_request&, topolet::sdk::Scores&)");
  TOPOLET_DETAIL_CHECK(propose, ProposingPolicy,
                       "propose() must be callable as propose(const topolet_request&, topolet::sdk::Proposals&)");
  TOPOLET_DETAIL_CHECK(pick, PickingPolicy,
                       "pick() must be callable as pick(const topolet_pick_request&, topolet::sdk::Picks&)");
  TOPOLET_DETAIL_CHECK(
      adjust, AdjustingPolicy,
      "adjust() must be callable as adjust(const topolet_adjust_request&, topolet::sdk::Adjustments&)");
  TOPOLET_DETAIL_CHECK(notify, ListeningPolicy, "notify() must be callable as notify(const topolet_event&)");
  TOPOLET_DETAIL_CHECK(tick, TickingPolicy,
                       "tick() must be callable as tick(const topolet_tick_request&, topolet::sdk::Wishes&), beside a "
                       "method interval_ms() that returns std::uint32_t");
  TOPOLET_DETAIL_CHECK(kAnnotations, AnnotatedPolicy,
                       "kAnnotations must be a public static constexpr std::array<topolet_str, N>");
  TOPOLET_DETAIL_CHECK(
      kTakingAnnotations, TakingPolicy,
      "kTakingAnnotations must be a public static constexpr std::array<topolet_kv, N> beside kAnnotations");
  TOPOLET_DETAIL_CHECK(kCodes, CodedPolicy, "kCodes must be a public static constexpr std::array<topolet_kv, N>");
  TOPOLET_DETAIL_CHECK(reads, ReadingPolicy, "reads() must be callable without arguments and return topolet_reads");
  return true;
}
#undef TOPOLET_DETAIL_CHECK

/// Whether the policy has a say: something that the host asks or tells it.
template <class P>
concept ActivePolicy =
    ScoringPolicy<P> || PickingPolicy<P> || AdjustingPolicy<P> || ListeningPolicy<P> || TickingPolicy<P>;

/// Fails to compile with a readable message if the class cannot be a plugin.
template <class P>
constexpr bool check_policy() {
  static_assert(!HiddenPolicy<P>,
                "the constructor and the methods of the policy are private: write `public:` before them, or make the "
                "class a struct");
  static_assert(Policy<P> || HiddenPolicy<P>,
                "a policy needs a public constructor that takes const topolet::sdk::Options&, or that and const "
                "topolet::sdk::Host&");
  if constexpr (Policy<P>) {
    if constexpr (!std::is_final_v<P>) static_assert(check_methods<P>());
    static_assert(ActivePolicy<P> || !ProposingPolicy<P>,
                  "the policy has only propose(), so it has no vote on what it proposes: it needs score(const "
                  "topolet_request&, topolet::sdk::Scores&) as well, or one of pick, adjust, notify and tick");
    static_assert(ActivePolicy<P> || ProposingPolicy<P> || !(AnnotatedPolicy<P> || ReadingPolicy<P>),
                  "the policy only names what it reads (kAnnotations or reads()), and does nothing: it needs "
                  "score(const topolet_request&, topolet::sdk::Scores&), or one of pick, adjust, notify and tick");
    static_assert(ActivePolicy<P> || ProposingPolicy<P> || AnnotatedPolicy<P> || ReadingPolicy<P>,
                  "a policy needs score(const topolet_request&, topolet::sdk::Scores&) or "
                  "pick(const topolet_pick_request&, topolet::sdk::Picks&), or one of adjust, notify and tick");
  }
  return true;
}

template <class P>
constexpr topolet_kvs taking_annotations_of() {
  if constexpr (TakingPolicy<P>) {
    return {P::kTakingAnnotations.data(), P::kTakingAnnotations.size()};
  } else {
    return {nullptr, 0};
  }
}

template <Policy P>
struct Instance {
  Instance(const Options& options, const Host& its_host) : host(its_host), policy(make(options, its_host)) {
    if constexpr (TickingPolicy<P>) ticks.interval_ms = policy.interval_ms();
    if constexpr (ReadingPolicy<P>) reads = policy.reads();
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
    if constexpr (ProposingPolicy<P>) {
      static constexpr topolet_propose kPropose = {sizeof(topolet_propose), 0, &Instance::propose};
      if (text(id) == TOPOLET_PROPOSE_ID) return &kPropose;
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
    if constexpr (AnnotatedPolicy<P>) {
      static constexpr topolet_annotations kNames = {
          sizeof(topolet_annotations), 0, {P::kAnnotations.data(), P::kAnnotations.size()}, taking_annotations_of<P>()};
      if (text(id) == TOPOLET_ANNOTATIONS_ID) return &kNames;
    }
    if constexpr (CodedPolicy<P>) {
      static constexpr topolet_codes kOwn = {sizeof(topolet_codes), 0, {P::kCodes.data(), P::kCodes.size()}};
      if (text(id) == TOPOLET_CODES_ID) return &kOwn;
    }
    if constexpr (ReadingPolicy<P>) {
      if (text(id) == TOPOLET_READS_ID) return &static_cast<Instance*>(instance->context)->reads;
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

  static std::int32_t propose(const topolet_instance* instance, const topolet_request* request,
                              const topolet_propose_sink* sink) noexcept {
    return stop_exceptions(sink, sink->error, [&] {
      Proposals proposals(*sink);
      policy_of(instance).propose(*request, proposals);
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

  /// Nobody can be told of a destructor that throws but the log.
  static void destroy(const topolet_instance* instance) noexcept {
    Instance* const self = static_cast<Instance*>(instance->context);
    const Host its_host = self->host;
    try {
      delete self;
    } catch (const std::exception& exception) {
      its_host.log(TOPOLET_LOG_ERROR, std::string("its destructor threw: ") + exception.what());
    } catch (...) {
      its_host.log(TOPOLET_LOG_ERROR, "its destructor threw something that is not a std::exception");
    }
  }

  topolet_instance view{sizeof(topolet_instance), 0, this, &get_capability, &destroy};
  topolet_tick ticks = ticks_of();
  topolet_reads reads = {};  ///< of a ReadingPolicy
  Host host;
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

// NAME_of: a text of the plugin's entry, from a constant of the class; empty without.
#define TOPOLET_DETAIL_TEXT(name, constant)  \
  template <class P>                         \
  constexpr topolet_str name##_of() {        \
    if constexpr (requires { P::constant; }) \
      return borrow(P::constant);            \
    else                                     \
      return {nullptr, 0};                   \
  }
TOPOLET_DETAIL_TEXT(vendor, kVendor)
TOPOLET_DETAIL_TEXT(url, kUrl)
TOPOLET_DETAIL_TEXT(description, kDescription)
#undef TOPOLET_DETAIL_TEXT

template <class P>
std::int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                    const topolet_instance** instance) noexcept {
  static_assert(check_policy<P>());
  if constexpr (Policy<P>) {
    const std::int32_t status = stop_exceptions(error, error->set, [&] {
      const Options options(request->options, request->configuration, request->topology, request->purpose,
                            std::chrono::milliseconds(request->deadline_ms));
      *instance = &(new Instance<P>(options, Host(request->host)))->view;
    });
    return status == TOPOLET_OK ? TOPOLET_OK : TOPOLET_FAILED;
  }
  return TOPOLET_FAILED;
}

}  // namespace detail
}  // namespace topolet::sdk

/// Makes a policy class a plugin. Use it once per plugin, outside any namespace. `id` and `version` are string
/// literals, `table` is a constexpr std::array<topolet_option, N>. A `static constexpr std::uint32_t kDefaultWeight` in
/// the class is the policy's weight where the configuration sets none; without it the weight is 1. `kAnnotations` names
/// the annotations that it reads (see AnnotatedPolicy), `kTakingAnnotations` those of them that take (TakingPolicy).
/// `static constexpr std::string_view` kVendor, kUrl and kDescription (one sentence) are shown to people.
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
                                                            &::topolet::sdk::detail::create<PolicyClass>,             \
                                                            ::topolet::sdk::detail::vendor_of<PolicyClass>(),         \
                                                            ::topolet::sdk::detail::url_of<PolicyClass>(),            \
                                                            ::topolet::sdk::detail::description_of<PolicyClass>()}
