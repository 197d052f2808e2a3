#include "plugins/smt/core_sets.hpp"

namespace topolet::smt {

using sdk::CoreMap;
using sdk::Set;

bool has_siblings(const CoreMap& map) { return map.most_threads() > 1; }

std::vector<std::uint32_t> cores_of(const CoreMap& map, const Set& cpus) {
  std::vector<bool> seen(map.core_count());
  std::vector<std::uint32_t> cores;
  sdk::for_each_index(cpus.view(), [&](std::uint32_t cpu) {
    const std::uint32_t core = map.core_of(cpu);
    if (core == TOPOLET_NONE || seen[core]) return;
    seen[core] = true;
    cores.push_back(core);
  });
  return cores;
}

Set on_cores(const CoreMap& map, const std::vector<std::uint32_t>& cores, const Set& cpus) {
  std::vector<bool> wanted(map.core_count());
  for (const std::uint32_t core : cores) wanted[core] = true;
  Set found;
  sdk::for_each_index(cpus.view(), [&](std::uint32_t cpu) {
    if (map.core_of(cpu) != TOPOLET_NONE && wanted[map.core_of(cpu)]) found.insert(cpu);
  });
  return found;
}

Set siblings_of(const CoreMap& map, topolet_set cpus) {
  std::vector<bool> touched(map.core_count());
  sdk::for_each_index(cpus, [&](std::uint32_t cpu) {
    if (map.core_of(cpu) != TOPOLET_NONE) touched[map.core_of(cpu)] = true;
  });
  Set siblings;
  for (std::uint32_t cpu = 0; cpu < map.os_index_end(); ++cpu) {
    const std::uint32_t core = map.core_of(cpu);
    if (core != TOPOLET_NONE && touched[core] && topolet_set_has(cpus, cpu) == 0) siblings.insert(cpu);
  }
  return siblings;
}

}  // namespace topolet::smt
