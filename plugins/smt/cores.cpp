#include "plugins/smt/cores.hpp"

#include <algorithm>

namespace topolet::smt {

using sdk::Set;

Cores::Cores(const topolet_topology& topology) {
  std::vector<std::uint32_t> number(topology.core_count, TOPOLET_NONE);
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (by_cpu_.size() <= pu.os_index) by_cpu_.resize(pu.os_index + std::size_t{1}, TOPOLET_NONE);
    const bool known = pu.core < number.size() && number[pu.core] != TOPOLET_NONE;
    if (!known) sizes_.push_back(0);
    const auto core = known ? number[pu.core] : static_cast<std::uint32_t>(sizes_.size() - 1);
    if (pu.core < number.size()) number[pu.core] = core;
    by_cpu_[pu.os_index] = core;
    ++sizes_[core];
  }
  if (!sizes_.empty()) threads_per_core_ = std::max<std::size_t>(1, topology.pu_count / sizes_.size());
}

Set Cores::whole(topolet_set cpus) const {
  std::vector<std::uint32_t> counts(count(), 0);
  for_each(cpus, [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE) ++counts[core_of(cpu)];
  });
  Set whole;
  for_each(cpus, [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core != TOPOLET_NONE && counts[core] == sizes_[core]) whole.insert(cpu);
  });
  return whole;
}

Set Cores::one_of_each(topolet_set cpus) const {
  std::vector<bool> seen(count());
  Set lowest;
  for_each(cpus, [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core == TOPOLET_NONE || seen[core]) return;
    seen[core] = true;
    lowest.insert(cpu);
  });
  return lowest;
}

std::vector<std::uint32_t> Cores::cores_of(const Set& cpus) const {
  std::vector<bool> seen(count());
  std::vector<std::uint32_t> cores;
  for_each(cpus.view(), [&](std::uint32_t cpu) {
    const std::uint32_t core = core_of(cpu);
    if (core == TOPOLET_NONE || seen[core]) return;
    seen[core] = true;
    cores.push_back(core);
  });
  return cores;
}

Set Cores::on(const std::vector<std::uint32_t>& cores, const Set& cpus) const {
  std::vector<bool> wanted(count());
  for (const std::uint32_t core : cores) wanted[core] = true;
  Set there;
  for_each(cpus.view(), [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE && wanted[core_of(cpu)]) there.insert(cpu);
  });
  return there;
}

Set Cores::beside(topolet_set cpus) const {
  std::vector<bool> touched(count());
  for_each(cpus, [&](std::uint32_t cpu) {
    if (core_of(cpu) != TOPOLET_NONE) touched[core_of(cpu)] = true;
  });
  Set siblings;
  for (std::uint32_t cpu = 0; cpu < by_cpu_.size(); ++cpu) {
    const bool is_beside = by_cpu_[cpu] != TOPOLET_NONE && touched[by_cpu_[cpu]] && topolet_set_has(cpus, cpu) == 0;
    if (is_beside) siblings.insert(cpu);
  }
  return siblings;
}

}  // namespace topolet::smt
