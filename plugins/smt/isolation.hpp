// Choice of whole cores for an isolated container, so that its idle siblings leave enough CPUs for others.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/smt/demand.hpp"

namespace topolet::smt {

/// One request for exclusive CPUs that are to be isolated. Borrows everything that it is made from.
class Isolation {
 public:
  Isolation(const sdk::CoreMap& cores, const topolet_request& request, const Demand& demand)
      : cores_(cores), request_(request), demand_(demand) {}

  /// 100 for a candidate where the container can be isolated, 50 if that may be impossible for the rest of its pod,
  /// which is placed together with it; else 0. `whole`: the CPUs on free whole cores.
  sdk::Verdict score(const topolet_candidate& candidate, const sdk::Set& whole) const;

  /// Returns true if the container fits isolated on `free` CPUs; `whole`: those of them that are on free whole cores.
  bool fits(topolet_set free, const sdk::Set& whole) const;

  /// The part of `usable` to take CPUs from: whole cores. All of them, which leaves the choice to other policies,
  /// unless a bad choice could make too many siblings idle; then only some. Empty if isolation is impossible.
  sdk::Set cpus_to_choose_from(topolet_set usable) const;

  /// Why the `siblings` of the `chosen` CPUs cannot be withheld: the pod's other containers would not find enough CPUs
  /// among the `usable` ones. Empty if they would.
  std::string shortage_for_pod(topolet_set usable, const sdk::Set& chosen, const sdk::Set& siblings) const;

 private:
  std::size_t allowed_idle(topolet_set usable) const;
  std::size_t worst_case_idle(const sdk::Set& whole, bool one_per_core) const;
  std::vector<sdk::Set> by_cpu_kind(const sdk::Set& whole) const;
  sdk::Set fewest_cpus(const sdk::Set& whole) const;
  sdk::Set choose_from(const sdk::Set& whole, std::size_t most_idle) const;

  const sdk::CoreMap& cores_;
  const topolet_request& request_;
  const Demand& demand_;
};

}  // namespace topolet::smt
