#include "core/engine/planning/home_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/state/shared_load.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

constexpr std::int64_t kMilli = 1000;
/// So much of a home is used that its containers are in each other's way.
constexpr std::int64_t kPressedPermille = 900;
/// A container that waits for a CPU for so much of the time lacks some, however little is used.
constexpr std::uint32_t kWaitsPermille = 250;
/// In tenths: of the use at which a container was widened, below which it is narrowed; of what a node would have left,
/// which its own containers may use when it lends; and of the same, at which it takes back.
constexpr std::int64_t kRelaxedTenths = 8;
constexpr std::int64_t kLendsTenths = 8;
constexpr std::int64_t kTakesBackTenths = 9;
/// In hundredths: of its quota, from which on a container is taken to be throttled.
constexpr std::int64_t kAtQuotaHundredths = 95;
/// While something is not known for less, all goes on as before.
constexpr std::chrono::seconds kUnknownMustLast{30};
/// What an idle container uses does not count.
constexpr std::int64_t kIdleMilli = 50;

/// It runs on shared CPUs, and what it uses there counts.
bool counts(const Allocation& allocation) {
  return allocation.is_managed() && allocation.may_run() && shared_request_milli(allocation) > 0;
}

bool is_at_quota(const placement::Demand& demand, std::int64_t used_milli) {
  return demand.cpu_limit_milli > 0 && used_milli >= demand.cpu_limit_milli * kAtQuotaHundredths / 100;
}

std::int64_t permille(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return part > 0 ? std::numeric_limits<std::int64_t>::max() : 0;
  return part * 1000 / whole;
}

std::string percent(std::int64_t of_thousand) { return fmt::format("{} %", (of_thousand + 5) / 10); }

template <class Key>
void note_since(std::map<Key, std::chrono::steady_clock::time_point>& since, const std::set<Key>& now_so,
                std::chrono::steady_clock::time_point now) {
  std::erase_if(since, [&](const auto& entry) { return !now_so.contains(entry.first); });
  for (const Key& key : now_so) since.try_emplace(key, now);
}

template <class Key>
bool lasts(const std::map<Key, std::chrono::steady_clock::time_point>& since, const Key& key,
           std::chrono::steady_clock::time_point now, std::chrono::milliseconds at_least) {
  const auto found = since.find(key);
  return found != since.end() && now - found->second >= at_least;
}

}  // namespace

/// A clock that was set back does not keep it for longer.
bool was_just_widened(const Allocation& allocation, std::chrono::milliseconds now) {
  if (!allocation.widening) return false;
  const std::chrono::milliseconds since = now - allocation.widening->at;
  return since < kBetweenWidenings && since > -kBetweenWidenings;
}

bool may_be_widened(const Allocation& allocation) {
  const placement::Workload& workload = allocation.workload;
  const bool is_at_rest = allocation.phase == Phase::kRunning && !allocation.stopping;
  const bool uses_devices =
      !workload.devices.empty() || !workload.cdi_devices.empty() || !workload.used_devices.empty();
  const bool is_placed = allocation.placement.mode == placement::Mode::kShared && allocation.is_movable_in_pool() &&
                         !allocation.stuck && !allocation.overruled && allocation.squeeze == Squeeze::kNone;
  return is_at_rest && is_placed && !uses_devices && shared_request_milli(allocation) > 0 &&
         allocation.placement.mems.empty() && workload.kubelet_mems.empty();
}

// ---- HomeUse

HomeUse::HomeUse(const Ledger& ledger, const topology::Topology& topology, const load::Load& load) {
  add_places(ledger, topology, load);
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (counts(allocation)) add_container(allocation, load);
    if (allocation.is_widened()) add_lent(allocation);
  }
  finish(ledger);
}

void HomeUse::add_places(const Ledger& ledger, const topology::Topology& topology, const load::Load& load) {
  for (const topology::Node& node : topology.nodes) {
    CpuSet cpus = node.cpus & ledger.pool();
    if (node.memory_only || cpus.empty()) continue;
    Place place;
    place.node = node.os_index;
    place.capacity_milli = static_cast<std::int64_t>(cpus.size()) * kMilli;
    const auto allowed = static_cast<std::int64_t>((node.cpus & ledger.inventory().allowed).size()) * kMilli;
    const auto measured = recent_load_of(load, node.os_index);
    const std::int64_t effective = measured ? measured->effective_milli.value_or(allowed) : allowed;
    if (effective < allowed)
      place.capacity_milli = place.capacity_milli * std::max<std::int64_t>(0, effective) / allowed;
    place.cpus = std::move(cpus);
    places_.push_back(std::move(place));
  }
}

void HomeUse::add_container(const Allocation& allocation, const load::Load& load) {
  const CpuSet home = allocation.home_cpus();
  const auto measured = recent_load_of(load, allocation.container_id);
  Home& of_container = homes_[allocation.workload.key];
  of_container.is_known = measured.has_value();
  if (measured) {
    const placement::Demand& demand = allocation.workload.demand;
    of_container.used_milli = std::max<std::int64_t>(0, measured->cpu_milli);
    of_container.beyond_milli = of_container.used_milli - demand.cpu_request_milli;
    of_container.is_at_quota = measured->is_throttled || is_at_quota(demand, of_container.used_milli);
    // A container that its own quota throttles waits for nobody else.
    of_container.waits = !of_container.is_at_quota && measured->psi_some_permille.value_or(0) >= kWaitsPermille;
  }
  for (Place& place : places_) {
    const auto here = static_cast<std::int64_t>((home & place.cpus).size());
    if (here == 0) continue;
    place.own_milli += of_container.used_milli * here / static_cast<std::int64_t>(home.size());
    place.is_known = place.is_known && of_container.is_known;
    place.waits = place.waits || of_container.waits;
    place.borrows = place.borrows || allocation.is_widened();
  }
}

void HomeUse::add_lent(const Allocation& allocation) {
  for (Place& place : places_) place.lent |= allocation.widening->cpus & place.cpus;
}

/// Containers of one home are in the same position, whatever each of them is widened by.
void HomeUse::finish(const Ledger& ledger) {
  std::map<set_words::Words, CpuSet> borrowed_by;
  for (const auto& [key, home] : homes_) {
    const Allocation& allocation = *ledger.find(key);
    if (allocation.is_widened())
      borrowed_by[allocation.home_cpus().words()] |= allocation.widening->cpus & ledger.pool();
  }
  for (auto& [key, home] : homes_) {
    const CpuSet cpus = ledger.find(key)->home_cpus();
    std::int64_t used = 0;
    std::int64_t capacity = 0;
    for (const Place& place : places_) {
      const auto here = static_cast<std::int64_t>((cpus & place.cpus).size());
      if (here == 0) continue;
      const auto all = static_cast<std::int64_t>(place.cpus.size());
      used += place.own_milli * here / all;
      capacity += place.capacity_milli * here / all;
      home.is_known = home.is_known && place.is_known;
    }
    const auto borrowed = borrowed_by.find(cpus.words());
    const std::int64_t lent =
        borrowed == borrowed_by.end() ? 0 : static_cast<std::int64_t>(borrowed->second.size()) * kMilli;
    home.use_permille = permille(used, capacity);
    home.reach_permille = permille(used, capacity + lent);
  }
}

std::size_t HomeUse::Place::most_lent() const {
  if (!is_known || waits || borrows) return 0;
  const std::int64_t each = capacity_milli / static_cast<std::int64_t>(cpus.size());
  const std::int64_t spare = capacity_milli - own_milli * 10 / kLendsTenths;
  if (each <= 0 || spare <= 0) return 0;
  // One CPU at least is nobody else's, so that it shows when its own containers use more.
  return std::min(static_cast<std::size_t>(spare / each), cpus.size() - 1);
}

bool HomeUse::Place::uses_the_rest() const {
  const std::int64_t each = capacity_milli / static_cast<std::int64_t>(cpus.size());
  const std::int64_t rest = capacity_milli - each * static_cast<std::int64_t>(lent.size());
  return own_milli * 10 >= rest * kTakesBackTenths;
}

std::size_t HomeUse::Place::still_lent() const {
  if (!is_known) return lent.size();
  if (waits || borrows) return 0;
  return uses_the_rest() ? std::min(lent.size(), most_lent()) : lent.size();
}

CpuSet HomeUse::Place::cpus_to_lend(std::size_t count, const topology::Topology& topology) const {
  CpuSet chosen;
  const auto take = [&](const CpuSet& from) {
    for (const std::uint32_t cpu : from) {
      if (chosen.size() >= count) return;
      chosen.insert(cpu);
    }
  };
  take(lent);
  for (auto core = topology.cores.rbegin(); core != topology.cores.rend() && chosen.size() < count; ++core) {
    take((*core & cpus) - chosen);
  }
  take(cpus - chosen);
  return chosen;
}

bool HomeUse::Home::is_pressed() const { return is_known && (reach_permille >= kPressedPermille || waits); }

bool HomeUse::Home::is_relaxed(std::uint32_t widened_at) const {
  return is_known && !waits && use_permille * 10 < std::int64_t{widened_at} * kRelaxedTenths;
}

const HomeUse::Home* HomeUse::home_of(const placement::ContainerKey& key) const {
  const auto found = homes_.find(key);
  return found == homes_.end() ? nullptr : &found->second;
}

// ---- HomePlanner

void HomePlanner::Lasting::note(const Ledger& ledger, const HomeUse& use, std::chrono::steady_clock::time_point now) {
  std::set<placement::ContainerKey> pressed_now;
  std::set<placement::ContainerKey> relaxed_now;
  std::set<placement::ContainerKey> unknown_now;
  for (const auto& [key, allocation] : ledger.allocations()) {
    const HomeUse::Home* home = use.home_of(key);
    const bool is_unknown = home == nullptr ? allocation.is_widened() : !home->is_known;
    if (is_unknown) unknown_now.insert(key);
    const bool stays = is_unknown && !lasts(unknown, key, now, kUnknownMustLast);
    const bool is_pressed = home != nullptr && home->is_pressed();
    const bool is_relaxed =
        home != nullptr && allocation.is_widened() && home->is_relaxed(allocation.widening->use_permille);
    if (is_pressed || (stays && pressed.contains(key))) pressed_now.insert(key);
    if (is_relaxed || (stays && relaxed.contains(key))) relaxed_now.insert(key);
  }
  std::set<std::uint32_t> unknown_nodes_now;
  for (const HomeUse::Place& place : use.places()) {
    if (!place.is_known) unknown_nodes_now.insert(place.node);
  }
  note_since(pressed, pressed_now, now);
  note_since(relaxed, relaxed_now, now);
  note_since(unknown, unknown_now, now);
  note_since(unknown_nodes, unknown_nodes_now, now);
}

HomePlanner::Change HomePlanner::narrowing(const Allocation& allocation, std::string why, const char* code) {
  return {.key = allocation.workload.key,
          .cpus = {},
          .use_permille = 0,
          .not_before = {},
          .reason = fmt::format("it leaves {} beside its home: {}", named("CPU", allocation.widening->cpus), why),
          .reason_code = code};
}

std::vector<HomePlanner::Change> HomePlanner::narrowed(const HomeUse& use, const Lasting& lasting,
                                                       const Times& now) const {
  std::vector<Change> changes;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (!allocation.is_widened() || allocation.stuck || was_just_widened(allocation, now.wall)) continue;
    if (std::optional<Change> change = narrowed(allocation, use, lasting, now)) changes.push_back(*std::move(change));
  }
  return changes;
}

std::optional<HomePlanner::Change> HomePlanner::narrowed(const Allocation& allocation, const HomeUse& use,
                                                         const Lasting& lasting, const Times& now) const {
  namespace code = placement::reason_code;
  const placement::ContainerKey& key = allocation.workload.key;
  if (!may_be_widened(allocation) && allocation.phase == Phase::kRunning && !allocation.stopping)
    return narrowing(allocation, "it is not as free to be placed as it was", code::kHomeStrict);
  if (lasts(lasting.unknown, key, now.steady, kUnknownMustLast))
    return narrowing(allocation, "what is used of its home is not known any more", code::kLoadUnknown);
  const HomeUse::Home* home = use.home_of(key);
  if (home != nullptr && home->is_known && lasts(lasting.relaxed, key, now.steady, kHomeMustLast)) {
    return narrowing(allocation,
                     fmt::format("{} of its home {} used, which was {} when it was widened",
                                 percent(home->use_permille), "are", percent(allocation.widening->use_permille)),
                     code::kHomeRelaxed);
  }
  return with_spare_taken_back(allocation, use, lasting, now);
}

/// A node whose containers wait although they use little takes all back: what would help them cannot be computed.
std::optional<HomePlanner::Change> HomePlanner::with_spare_taken_back(const Allocation& allocation, const HomeUse& use,
                                                                      const Lasting& lasting, const Times& now) const {
  CpuSet kept = allocation.widening->cpus;
  NodeSet needed;
  bool waits = false;
  bool is_unknown = false;
  for (const HomeUse::Place& place : use.places()) {
    if (!kept.intersects(place.cpus)) continue;
    const bool has_become_unknown = lasts(lasting.unknown_nodes, place.node, now.steady, kUnknownMustLast);
    const std::size_t count = has_become_unknown ? 0 : place.still_lent();
    if (count >= place.lent.size()) continue;
    kept -= place.cpus - place.cpus_to_lend(count, *placer_.topology());
    needed.insert(place.node);
    waits = waits || (place.is_known && place.waits && !place.uses_the_rest());
    is_unknown = is_unknown || has_become_unknown;
  }
  if (needed.empty() || kept == allocation.widening->cpus) return std::nullopt;
  Change change = narrowing(
      allocation,
      is_unknown ? fmt::format("what is used of {} is not known any more", named("node", needed))
                 : fmt::format("{} {} its CPUs again", named("node", needed), needed.size() == 1 ? "needs" : "need"),
      is_unknown ? placement::reason_code::kLoadUnknown : placement::reason_code::kSpareNeeded);
  if (!kept.empty()) {
    change.reason = fmt::format("it leaves {} beside its home, and keeps {}: {} {} CPUs again",
                                named("CPU", allocation.widening->cpus - kept), named("CPU", kept),
                                named("node", needed), needed.size() == 1 ? "needs its" : "need their");
    change.use_permille = allocation.widening->use_permille;
  }
  change.cpus = std::move(kept);
  if (waits) change.not_before = now.wall + kBetweenMovesOfOne;
  return change;
}

/// Containers that use more than they request come before those that are in their way at home. Where none does, all
/// that use something are widened.
std::vector<HomePlanner::Change> HomePlanner::widened(const HomeUse& use, const Lasting& lasting,
                                                      const Times& now) const {
  struct Found {
    std::int64_t beyond_milli;
    Change change;
  };
  std::vector<Found> found;
  std::set<set_words::Words> homes_with_bursts;
  for (const auto& [key, home_since] : lasting.pressed) {
    const HomeUse::Home* home = use.home_of(key);
    if (home != nullptr && home->beyond_milli > 0 && !home->is_at_quota)
      homes_with_bursts.insert(ledger_.find(key)->home_cpus().words());
  }
  for (const auto& [key, home_since] : lasting.pressed) {
    const Allocation* allocation = ledger_.find(key);
    const HomeUse::Home* home = use.home_of(key);
    if (allocation == nullptr || home == nullptr || !home->is_pressed() || now.steady - home_since < kHomeMustLast)
      continue;
    if (!may_be_widened(*allocation) || was_just_widened(*allocation, now.wall)) continue;
    if (allocation->widening && now.wall < allocation->widening->not_before) continue;
    if (home->is_at_quota || home->used_milli < kIdleMilli) continue;
    const bool is_left_to_others = homes_with_bursts.contains(allocation->home_cpus().words());
    if (home->beyond_milli <= 0 && !home->waits && is_left_to_others) continue;
    if (std::optional<Change> change = widened(*allocation, use))
      found.push_back({home->beyond_milli, *std::move(change)});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(b.beyond_milli, a.change.key) < std::tie(a.beyond_milli, b.change.key);
  });
  std::vector<Change> changes;
  changes.reserve(found.size());
  for (Found& each : found) changes.push_back(std::move(each.change));
  return changes;
}

/// By what the nearest nodes lend of which it does not have all already. A little more is not worth a change.
std::optional<HomePlanner::Change> HomePlanner::widened(const Allocation& allocation, const HomeUse& use) const {
  const topology::Topology& topology = *placer_.topology();
  const CpuSet had = allocation.is_widened() ? allocation.widening->cpus : CpuSet();
  const NodeSet at_home = topology.nodes_of(allocation.home_cpus());
  if (at_home.empty()) return std::nullopt;
  std::map<std::uint32_t, CpuSet> more_at;  // by distance
  for (const HomeUse::Place& place : use.places()) {
    if (at_home.contains(place.node)) continue;
    const std::size_t most = place.most_lent();
    const bool grows = most >= place.lent.size() + std::max<std::size_t>(1, place.cpus.size() / 10);
    const std::size_t count = grows ? most : std::min(place.lent.size(), place.still_lent());
    CpuSet more = place.cpus_to_lend(count, topology) - had;
    if (more.empty()) continue;
    std::uint32_t distance = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t node : at_home) distance = std::min(distance, topology.distance(node, place.node));
    more_at[distance] |= more;
  }
  if (more_at.empty()) return std::nullopt;
  const HomeUse::Home& home = *use.home_of(allocation.workload.key);
  const CpuSet& more = more_at.begin()->second;
  const std::string pressure = home.waits && home.reach_permille < kPressedPermille
                                   ? std::string("it waits for CPUs of its home")
                                   : fmt::format("{} of its home are used", percent(home.use_permille));
  Change change{
      .key = allocation.workload.key,
      .cpus = had | more,
      .use_permille = static_cast<std::uint32_t>(std::clamp<std::int64_t>(home.use_permille, 1, 1000)),
      .not_before = {},
      .reason = fmt::format("it may also run on {} of {}, which {} to spare: {}", named("CPU", more),
                            named("node", topology.nodes_of(more)), more.size() == 1 ? "is" : "are", pressure),
      .reason_code = placement::reason_code::kHomePressed};
  if (allocation.is_widened()) change.use_permille = allocation.widening->use_permille;
  return change;
}

std::optional<bool> HomePlanner::is_soft(const Allocation& allocation) const {
  placement::Workload workload = allocation.workload;
  workload.pod_nodes = ledger_.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Placer::Constraints where_it_is;
  where_it_is.occasion = placement::Occasion::kMove;
  where_it_is.only_shared = true;
  where_it_is.among = {nodes_of(allocation, *placer_.topology()).words()};
  const placement::Decision decision = placer_.plan(ledger_, workload, where_it_is).decision;
  if (!decision.lost_votes.empty()) return std::nullopt;
  return !decision.denied && decision.soft_home && decision.within == allocation.within;
}

}  // namespace topolet::engine
