#include "core/engine/planning/besteffort_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/engine/planning/home_planner.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

constexpr std::int64_t kMilliOfCpu = 1000;
/// So much more than a CPU must be left over before they get one more, so that it is not taken again at once.
constexpr std::int64_t kMargin = 250;

namespace code = placement::reason_code;

/// Nothing if none of it is recent, or it has not been measured for long enough.
std::optional<load::Load> recent_part_of(const load::Load* load) {
  if (load == nullptr || load->measured_for.value_or(kMeasuredForBestEffort) < kMeasuredForBestEffort)
    return std::nullopt;
  load::Load recent = *load;
  std::erase_if(recent.containers, [](const auto& entry) { return entry.second.age > kOldestForBestEffort; });
  std::erase_if(recent.nodes, [](const auto& entry) { return entry.second.age > kOldestForBestEffort; });
  if (recent.containers.empty()) return std::nullopt;
  return recent;
}

/// Nobody's use counts as zero because it is not known.
std::int64_t used_milli(const Allocation& allocation, const load::Load& recent) {
  const auto measured = recent.containers.find(allocation.container_id);
  return measured == recent.containers.end() ? std::max<std::int64_t>(0, allocation.workload.demand.cpu_request_milli)
                                             : std::max<std::int64_t>(0, measured->second.cpu_milli);
}

}  // namespace

std::optional<event::BestEffortNarrowed> BestEffortPlanner::next(const load::Load* load,
                                                                 std::optional<std::uint32_t> percent, bool may_step,
                                                                 const Pressure& pressure) const {
  if (!percent) return freed("BestEffort containers are not narrowed any more", code::kBestEffortFreed);
  const std::optional<load::Load> recent = recent_part_of(load);
  if (!recent) return freed("what is used of the pool is not known any more", code::kLoadUnknown);
  if (!may_step || !has_yielding()) return std::nullopt;
  return step(*recent, *percent, pressure);
}

bool BestEffortPlanner::has_yielding() const {
  const auto& allocations = ledger_.allocations();
  return std::any_of(allocations.begin(), allocations.end(),
                     [](const auto& entry) { return entry.second.yields() && entry.second.is_managed(); });
}

std::optional<event::BestEffortNarrowed> BestEffortPlanner::freed(const char* why, const char* code) const {
  if (ledger_.besteffort().empty()) return std::nullopt;
  return event::BestEffortNarrowed{{}, why, code};
}

std::optional<event::BestEffortNarrowed> BestEffortPlanner::step(const load::Load& recent, std::uint32_t percent,
                                                                 const Pressure& pressure) const {
  const Use use = use_of(recent);
  const std::size_t all = ledger_.pool().size();
  const CpuSet had = this->had();
  const std::size_t count = size_after(use.capacity_milli * percent / 100 - use.others_milli);
  if (pressure.now != nullptr && pressure.now->cpus.intersects(had)) {
    const std::size_t least = std::min(kLeastForBestEffort, all);
    const std::size_t fewer = had.size() > least + one_step() ? had.size() - one_step() : least;
    if (fewer < std::min(count, had.size())) return yield_to(*pressure.now, fewer, recent);
  }
  if (count > had.size() && (pressure.now != nullptr || pressure.is_remembered)) return std::nullopt;
  if (count == had.size() || all == 0) return std::nullopt;
  return event::BestEffortNarrowed{
      count >= all ? CpuSet() : choose(count, recent),
      fmt::format(
          "BestEffort containers run on {} of the {} CPUs of the pool: {} % of the {:.2f} that these can do, less "
          "the {:.2f} that others use",
          count, all, percent, static_cast<double>(use.capacity_milli) / kMilliOfCpu,
          static_cast<double>(use.others_milli) / kMilliOfCpu),
      count < had.size() ? code::kBestEffortYields : code::kBestEffortFreed};
}

/// The first CPUs to go are those on which it waits.
std::optional<event::BestEffortNarrowed> BestEffortPlanner::yield_to(const Pressed& pressed, std::size_t size,
                                                                     const load::Load& recent) const {
  return event::BestEffortNarrowed{
      choose(size, recent, pressed.cpus),
      fmt::format("BestEffort containers run on {} of the {} CPUs of the pool: {} has waited for a CPU for {} s beside "
                  "them, now for {} % of the time",
                  size, ledger_.pool().size(), pressed.container, kWaitsBeforeOthersYield.count(),
                  pressed.permille / 10),
      code::kBestEffortPressure};
}

CpuSet BestEffortPlanner::had() const {
  return ledger_.besteffort().empty() ? ledger_.pool() : ledger_.besteffort() & ledger_.pool();
}

/// A tenth of the machine.
std::size_t BestEffortPlanner::one_step() const {
  return std::max<std::size_t>(1, ledger_.inventory().allowed.size() / 10);
}

BestEffortPlanner::Use BestEffortPlanner::use_of(const load::Load& recent) const {
  Use use;
  const HomeUse homes(ledger_, *placer_.topology(), recent);
  for (const HomeUse::Place& place : homes.places()) use.capacity_milli += place.capacity_milli;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const CpuSet& cpus = allocation.placement.cpus;
    if (!allocation.follows_pool() || !allocation.may_run() || allocation.yields() || cpus.empty()) continue;
    const auto here = static_cast<std::int64_t>((cpus & ledger_.pool()).size());
    use.others_milli += used_milli(allocation, recent) * here / static_cast<std::int64_t>(cpus.size());
  }
  return use;
}

/// `milli`: what is left over. They give way at once, and get back a tenth of the machine at a time.
std::size_t BestEffortPlanner::size_after(std::int64_t milli) const {
  const std::size_t all = ledger_.pool().size();
  const std::size_t had = this->had().size();
  const std::size_t least = std::min(kLeastForBestEffort, all);
  const auto whole = [&](std::int64_t left) {
    const auto cpus = static_cast<std::size_t>(std::max<std::int64_t>(0, left) / kMilliOfCpu);
    return std::clamp(cpus, least, all);
  };
  const std::size_t target = whole(milli);
  if (target <= had) return target;
  const std::size_t most = had + one_step();
  return std::max({had, least, std::min(whole(milli - kMargin), most)});
}

/// Those that they have first, then whole cores from the end of the nodes of which others use the least; of both, nodes
/// with CPUs of `last` come last.
CpuSet BestEffortPlanner::choose(std::size_t count, const load::Load& recent, const CpuSet& last) const {
  const HomeUse use(ledger_, *placer_.topology(), recent);
  std::vector<const HomeUse::Place*> places;
  for (const HomeUse::Place& place : use.places()) places.push_back(&place);
  std::stable_sort(places.begin(), places.end(), [&last](const HomeUse::Place* a, const HomeUse::Place* b) {
    if (a->cpus.intersects(last) != b->cpus.intersects(last)) return b->cpus.intersects(last);
    return a->capacity_milli - a->own_milli > b->capacity_milli - b->own_milli;
  });
  const CpuSet had = this->had();
  CpuSet chosen;
  const auto take = [&](const CpuSet& from) {
    for (const std::uint32_t cpu : from) {
      if (chosen.size() < count) chosen.insert(cpu);
    }
  };
  const auto& cores = placer_.topology()->cores;
  for (const bool is_had : {true, false}) {
    for (const HomeUse::Place* place : places) {
      const CpuSet from = is_had ? place->cpus & had : place->cpus;
      for (auto core = cores.rbegin(); core != cores.rend(); ++core) take(*core & from);
    }
  }
  take(ledger_.pool());
  return chosen;
}

}  // namespace topolet::engine
