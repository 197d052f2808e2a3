#include "plugins/smt/policy.hpp"

namespace topolet::smt {
namespace {

constexpr std::string_view kNoPolicy = "smt has no policy yet";

std::string key_of(const topolet_workload& workload) {
  return std::string(sdk::text(workload.pod_uid)) + '/' + std::string(sdk::text(workload.container_name));
}

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["isolate-siblings"] == "off") read.isolate = Isolate::kOff;
  if (options["isolate-siblings"] == "exclusive") read.isolate = Isolate::kExclusive;
  if (options["round"] == "deny") read.round = Round::kDeny;
  read.pair = options["pair"] == "true";
  return read;
}

sdk::Set siblings_of(const topolet_topology& topology, const sdk::Set& cpus) {
  sdk::Set siblings;
  for (std::size_t i = 0; i < topology.core_count; ++i) {
    if (sdk::size_of_both(topology.cores[i], cpus.view()) > 0) siblings |= topology.cores[i];
  }
  return siblings - cpus;
}

Policy::Policy(const sdk::Options& options, const sdk::Host& host) : options_(read_options(options)), host_(host) {
  host_.log(TOPOLET_LOG_INFO, kNoPolicy);
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const {
  for (std::size_t i = 0; i < request.candidate_count; ++i) scores.abstain(i, kNoPolicy);
}

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const topolet_topology& topology = *request.request->topology;
  const sdk::Set usable(request.usable);
  const std::size_t beside = siblings_of(topology, usable).size();
  // Nobody is held off a sibling until there is a policy that says when.
  picks.withhold({nullptr, 0});
  picks.reason(std::string(kNoPolicy) + "; " + std::to_string(beside) + " siblings of " +
               std::to_string(usable.size()) + " usable CPUs are in other hands");
}

void Policy::notify(const topolet_event& event) const {
  const std::string key = key_of(*event.workload);
  if (event.kind == TOPOLET_EVENT_RELEASED) {
    host_.remove(key);
  } else if (sdk::size_of(event.withheld) > 0) {
    host_.set(key, sdk::Set(event.withheld).to_string());
  }
}

}  // namespace topolet::smt
