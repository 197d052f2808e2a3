// How a kernel divides CPUs among those who may run on some of them each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index_set.hpp"

namespace topolet::bench {

struct Claim {
  CpuSet cpus;              ///< it may run on these only
  std::int64_t milli = 0;   ///< the CPU time that it would use, in thousandths of a CPU
  std::int64_t weight = 1;  ///< as cpu.weight: of what is short, everybody gets in proportion to it
};

/// Returns what each one gets of its claim: weighted max-min fairness. Nobody could get more but from somebody who has
/// less for its weight, and no CPU is idle that somebody wants. A kernel comes near to that in seconds.
std::vector<std::int64_t> fair_shares(const std::vector<Claim>& claims);

}  // namespace topolet::bench
