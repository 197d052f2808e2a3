#include "core/engine/state/shared_load.hpp"

#include <algorithm>

#include "core/engine/state/ledger.hpp"

namespace topolet::engine {
namespace {

// More than any machine has, and so little that no sum overflows.
constexpr std::int64_t kLargestRequestMilli = 1'000'000'000;

}  // namespace

SharedLoad::Load SharedLoad::part(const CpuSet& cpus, std::int64_t request_milli) {
  if (cpus.empty()) return 0;
  const std::int64_t milli = std::clamp<std::int64_t>(request_milli, 0, kLargestRequestMilli);
  return milli * kPerMilli / static_cast<Load>(cpus.size());
}

void SharedLoad::add_to_each(const CpuSet& cpus, Load load) {
  if (load == 0) return;
  for (const std::uint32_t cpu : cpus) {
    if (of_cpu_.size() <= cpu) of_cpu_.resize(cpu + 1, 0);
    of_cpu_[cpu] += load;
  }
}

SharedLoad::Load SharedLoad::total(const CpuSet& cpus) const {
  Load sum = 0;
  for (const std::uint32_t cpu : cpus) sum += cpu < of_cpu_.size() ? of_cpu_[cpu] : 0;
  return sum;
}

SharedLoad::Load SharedLoad::highest(const CpuSet& cpus) const {
  Load most = 0;
  for (const std::uint32_t cpu : cpus) most = std::max(most, cpu < of_cpu_.size() ? of_cpu_[cpu] : 0);
  return most;
}

SharedLoad::Load SharedLoad::mean(const CpuSet& cpus) const {
  return cpus.empty() ? 0 : total(cpus) / static_cast<Load>(cpus.size());
}

void SharedLoadSum::add(const CpuSet& cpus, std::int64_t request_milli) {
  if (request_milli > 0) parts_[cpus] += SharedLoad::part(cpus, request_milli);
}

SharedLoad SharedLoadSum::load() const {
  SharedLoad load;
  for (const auto& [cpus, part] : parts_) load.add_to_each(cpus, part);
  return load;
}

SharedLoad shared_load_of(const Ledger& ledger) {
  SharedLoadSum sum;
  for (const auto& [key, allocation] : ledger.allocations()) {
    sum.add(allocation.home_cpus(), shared_request_milli(allocation));
  }
  return sum.load();
}

std::int64_t shared_request_milli(const Allocation& allocation) {
  return allocation.follows_pool() ? allocation.workload.demand.cpu_request_milli : 0;
}

}  // namespace topolet::engine
