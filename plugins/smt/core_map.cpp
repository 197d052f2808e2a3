#include "plugins/smt/core_map.hpp"

namespace topolet::smt {

using sdk::Set;

CoreMap::CoreMap(const topolet_topology& topology) : threads_per_core_(sdk::threads_per_core(topology)) {
  std::vector<std::uint32_t> number(topology.core_count, TOPOLET_NONE);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (core_by_cpu_.size() <= pu.os_index) core_by_cpu_.resize(pu.os_index + std::size_t{1}, TOPOLET_NONE);
    const bool known = pu.core < number.size() && number[pu.core] != TOPOLET_NONE;
    if (!known) threads_by_core_.push_back(0);
    const auto core = known ? number[pu.core] : static_cast<std::uint32_t>(threads_by_core_.size() - 1);
    if (pu.core < number.size()) number[pu.core] = core;
    core_by_cpu_[pu.os_index] = core;
    ++threads_by_core_[core];
  }
}

Set CoreMap::on_whole_cores(topolet_set cpus) const {
  std::vector<std::uint32_t> counts(core_count(), 0);
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE) ++counts[core_of(cpu)];
  });
  Set whole;
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core != TOPOLET_NONE && counts[core] == threads_by_core_[core]) whole.insert(cpu);
  });
  return whole;
}

Set CoreMap::lowest_of_each_core(topolet_set cpus) const {
  std::vector<bool> seen(core_count());
  Set lowest;
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core == TOPOLET_NONE || seen[core]) return;
    seen[core] = true;
    lowest.insert(cpu);
  });
  return lowest;
}

std::vector<std::uint32_t> CoreMap::cores_of(const Set& cpus) const {
  std::vector<bool> seen(core_count());
  std::vector<std::uint32_t> cores;
  sdk::for_each_index(cpus.view(), [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core == TOPOLET_NONE || seen[core]) return;
    seen[core] = true;
    cores.push_back(core);
  });
  return cores;
}

Set CoreMap::on_cores(const std::vector<std::uint32_t>& cores, const Set& cpus) const {
  std::vector<bool> wanted(core_count());
  for (const std::uint32_t core : cores) wanted[core] = true;
  Set found;
  sdk::for_each_index(cpus.view(), [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE && wanted[core_of(cpu)]) found.insert(cpu);
  });
  return found;
}

Set CoreMap::siblings_of(topolet_set cpus) const {
  std::vector<bool> touched(core_count());
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE) touched[core_of(cpu)] = true;
  });
  Set siblings;
  for (std::uint32_t cpu = 0; cpu < core_by_cpu_.size(); ++cpu) {
    const bool is_sibling =
        core_by_cpu_[cpu] != TOPOLET_NONE && touched[core_by_cpu_[cpu]] && topolet_set_has(cpus, cpu) == 0;
    if (is_sibling) siblings.insert(cpu);
  }
  return siblings;
}

}  // namespace topolet::smt
