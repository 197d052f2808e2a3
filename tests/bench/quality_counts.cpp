#include "tests/bench/quality_counts.hpp"

#include <algorithm>
#include <limits>

namespace topolet::bench {

double share(double part, std::uint64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : part / static_cast<double>(whole);
}

Figure count(const char* name, std::uint32_t value) { return {name, static_cast<double>(value), true}; }

void append(Figures& figures, const Figures& more) { figures.insert(figures.end(), more.begin(), more.end()); }

void Counts::add(const Admission& admission, const topology::Topology& topology) {
  ++counted;
  denied += admission.placed.is_denied ? 1 : 0;
  lost_votes += admission.placed.has_lost_votes ? 1 : 0;
  in_node += topology.nodes_of(admission.placed.cpus).size() == 1 ? 1 : 0;
}

Figures Counts::figures() const {
  return {count("pods", counted),
          count("denied", denied),
          count(kLostVotes, lost_votes),
          {"in one node", share(in_node, counted)}};
}

bool is_inside_one(const CpuSet& cpus, const std::vector<CpuSet>& groups) {
  return !cpus.empty() &&
         std::any_of(groups.begin(), groups.end(), [&](const CpuSet& group) { return cpus.is_subset_of(group); });
}

Churn churn_on(const QualityMachine& machine, const Scene& scene, std::uint64_t seed) {
  ChurnOptions options = scene.churn;
  options.cpus = static_cast<std::uint32_t>(machine.cpus().size());
  options.gpus = machine.gpus();
  options.seed = seed;
  return make_churn(options);
}

}  // namespace topolet::bench
