// The capabilities of a plugin that the host calls, in one table.
#pragma once

#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/codes.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/reads.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include <cstddef>
#include <tuple>

namespace topolet::plugin {

/// One capability: the struct that a plugin gives for `id`, and the function that it must have; in the one that is data
/// only, that data.
template <class Struct, class Member>
struct Capability {
  const char* id;
  const char* name;  ///< the member's, for messages
  Member Struct::*member;
};
template <class Struct, class Member>
Capability(const char*, const char*, Member Struct::*) -> Capability<Struct, Member>;

inline constexpr Capability kScore{TOPOLET_SCORE_ID, "score", &topolet_score::score};
inline constexpr Capability kPropose{TOPOLET_PROPOSE_ID, "propose", &topolet_propose::propose};
inline constexpr Capability kPick{TOPOLET_PICK_ID, "pick", &topolet_pick::pick};
inline constexpr Capability kAdjust{TOPOLET_ADJUST_ID, "adjust", &topolet_adjust::adjust};
inline constexpr Capability kEvents{TOPOLET_EVENTS_ID, "notify", &topolet_events::notify};
inline constexpr Capability kTick{TOPOLET_TICK_ID, "tick", &topolet_tick::tick};
inline constexpr Capability kAnnotations{TOPOLET_ANNOTATIONS_ID, "names", &topolet_annotations::names};
inline constexpr Capability kReads{TOPOLET_READS_ID, "env", &topolet_reads::env};

inline constexpr Capability kCodes{TOPOLET_CODES_ID, "codes", &topolet_codes::codes};

inline constexpr std::tuple kCapabilities{kScore, kPropose,     kPick,  kAdjust, kEvents,
                                          kTick,  kAnnotations, kReads, kCodes};

/// Returns the bytes that a plugin's struct has at least: what was appended behind the member may be missing.
template <class Struct, class Member>
std::size_t least_size_of(const Capability<Struct, Member>& capability) {
  static constexpr Struct kOne{};
  const auto* const end = reinterpret_cast<const char*>(&(kOne.*capability.member) + 1);
  return static_cast<std::size_t>(end - reinterpret_cast<const char*>(&kOne));
}

/// The struct that one plugin gave for each capability; null for one that it does not have.
using CapabilityStructs = std::tuple<const topolet_score*, const topolet_propose*, const topolet_pick*,
                                     const topolet_adjust*, const topolet_events*, const topolet_tick*,
                                     const topolet_annotations*, const topolet_reads*, const topolet_codes*>;

template <class Struct, class Member>
const Struct*& struct_of(CapabilityStructs& structs, const Capability<Struct, Member>&) {
  return std::get<const Struct*>(structs);
}
template <class Struct, class Member>
const Struct* struct_of(const CapabilityStructs& structs, const Capability<Struct, Member>&) {
  return std::get<const Struct*>(structs);
}

/// Calls `visit` with each Capability, in the order of the table.
template <class Visit>
void for_each_capability(Visit visit) {
  std::apply([&visit](const auto&... capability) { (visit(capability), ...); }, kCapabilities);
}

}  // namespace topolet::plugin
