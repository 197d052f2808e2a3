#include "plugins/load/policy.hpp"

#include <algorithm>
#include <string>

#include "plugins/load/calm_cores.hpp"

namespace topolet::load_policy {
namespace {

using sdk::Set;

std::int32_t points_off(std::int64_t part, std::int64_t whole, std::int32_t most) {
  if (whole <= 0 || part >= whole) return -most;
  return part <= 0 ? 0 : -static_cast<std::int32_t>((part * most + whole / 2) / whole);
}

/// The nodes of a candidate taken together.
NodeUse sum_of(const topolet_candidate& candidate, const std::vector<NodeUse>& uses) {
  NodeUse sum;
  sum.is_effective_known = true;
  for (const NodeUse& use : uses) {
    if (!topolet_set_has(candidate.nodes, use.os_index)) continue;
    sum.nominal_milli += use.nominal_milli;
    sum.effective_milli += use.effective_milli;
    sum.is_effective_known = sum.is_effective_known && use.is_effective_known;
    sum.pool_milli += use.pool_milli;
    sum.shared_milli += use.shared_milli;
    sum.assumed_milli += use.assumed_milli;
    sum.unmeasured += use.unmeasured;
  }
  return sum;
}

std::string with_note(std::string reason, const std::string& note) {
  return note.empty() ? reason : reason + "; " + note;
}

std::string describe(const NodeUse& use) {
  std::string reason = cpus_text(use.shared_milli + use.assumed_milli) + " of " + cpus_text(use.pool_milli) +
                       " shared CPUs here are used";
  if (use.unmeasured > 0)
    reason += ", " + cpus_text(use.assumed_milli) + " of it by " + sdk::counted(use.unmeasured, "container") +
              " not measured yet";
  return reason;
}

/// Where a hypervisor may take time and does not tell, little CPU time of a node means that it is idle, or that little
/// is left of it: nothing follows from that. Empty if that is known of all nodes.
std::string why_unknown(const std::vector<NodeUse>& uses) {
  for (const NodeUse& use : uses) {
    if (use.nominal_milli > 0 && !use.is_effective_known)
      return "what the CPUs of node " + std::to_string(use.os_index) +
             " can do is not known: no steal is reported, and there may be a hypervisor";
  }
  return "";
}

void abstain(const topolet_request& request, const std::string& why, std::string_view code, sdk::Scores& scores) {
  for (std::size_t i = 0; i < request.candidate_count; ++i) {
    scores.abstain(i, why);
    scores.code(i, code);
  }
}

bool is_class(const topolet_request& request, const PolicyOptions& options, Class which) {
  return class_of(source_of(*request.workload), options.taking_namespaces).which == which;
}

/// The other CPUs of the cores of the chosen ones.
Set siblings_of_chosen(const topolet_pick_request& asked) {
  Set siblings;
  const topolet_topology& topology = *asked.request->topology;
  for (std::size_t core = 0; core < topology.core_count; ++core) {
    if (sdk::size_of_both(topology.cores[core], asked.chosen) > 0) siblings |= topology.cores[core];
  }
  siblings -= asked.chosen;
  return siblings;
}

}  // namespace

Policy::Policy(const sdk::Options& options, const sdk::Host& host)
    : options_(read_options(options)), relief_(host, options_) {}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const {
  const ClassWord said = class_of(source_of(*request.workload), options_.taking_namespaces);
  const std::string note = said.error.empty() ? said.note : said.error;
  const Measured measured(request.load, *request.topology, *request.ledger);
  if (!measured.why_not().empty())
    return abstain(request, with_note(measured.why_not(), note), note.empty() ? "not-measured" : "class", scores);
  if (request.exclusive != 0) {
    score_exclusive(request, measured, note, scores);
  } else {
    score_shared(request, measured, note, scores);
  }
}

void Policy::score_shared(const topolet_request& request, const Measured& measured, const std::string& note,
                          sdk::Scores& scores) const {
  const std::vector<NodeUse> uses = node_uses(*request.topology, *request.ledger, measured);
  if (const std::string why = why_unknown(uses); !why.empty())
    return abstain(request, with_note(why, note), note.empty() ? "not-measured" : "class", scores);
  const bool is_moved = request.occasion == TOPOLET_OCCASION_MOVE;
  const Left left = is_moved ? relief_.left_by(sdk::text(request.workload->container_id)) : Left();
  const std::int64_t own = std::max(assumed_milli(request.workload->demand), left.used_milli);
  for (std::size_t i = 0; i < request.candidate_count; ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    const NodeUse use = sum_of(candidate, uses);
    if (use.pool_milli <= 0) continue;
    if (sdk::size_of_both(candidate.nodes, left.nodes.view()) > 0) {
      scores.reject(i, "it left a node here because of its load");
      continue;
    }
    const std::int64_t used = use.shared_milli + use.assumed_milli + own;
    scores.score(i, points_off(used, use.pool_milli, kMostPoints), with_note(describe(use), note));
    scores.code(i, "used");
  }
}

void Policy::score_exclusive(const topolet_request& request, const Measured& measured, const std::string& note,
                             sdk::Scores& scores) const {
  const std::vector<NodeUse> uses = node_uses(*request.topology, *request.ledger, measured);
  const Set beside = cpus_beside_busy_ones(*request.topology, *request.ledger, measured);
  const auto needed = static_cast<std::int64_t>(request.exclusive_cpus);
  for (std::size_t i = 0; i < request.candidate_count; ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    const auto calm = static_cast<std::int64_t>((Set(candidate.usable) - beside).size());
    const NodeUse use = sum_of(candidate, uses);
    const std::int64_t missing = std::max<std::int64_t>(0, needed - calm);
    const bool loses = use.effective_milli < use.nominal_milli;
    const std::int32_t for_steal =
        loses ? points_off(use.nominal_milli - use.effective_milli, use.nominal_milli, kMostPoints) : 0;
    const std::int32_t for_cores = missing > 0 ? points_off(missing, needed, kBesideBusyPoints) : 0;
    std::string reason = missing > 0 ? std::to_string(missing) + " of its CPUs would be beside busy ones"
                                     : std::string("no CPU would be beside a busy one");
    if (loses)
      reason += ", and CPUs here can do " + cpus_text(use.effective_milli) + " of " + cpus_text(use.nominal_milli);
    scores.score(i, std::max(-kMostPoints, for_steal + for_cores), with_note(std::move(reason), note));
    if (missing > 0 || loses) scores.code(i, missing > 0 ? "beside-busy" : "used");
  }
}

void Policy::pick(const topolet_pick_request& asked, sdk::Picks& picks) const {
  if (asked.count == 0) return;
  const bool is_lse = is_class(*asked.request, options_, Class::kLse);
  if (asked.stage == TOPOLET_PICK_REVIEW && is_lse) return withhold_siblings(asked, picks);
  if (asked.stage != TOPOLET_PICK_CHOOSE) return;
  if (is_lse) return keep_to_whole_cores(asked, picks);
  if (!sdk::has_flag(*asked.request, TOPOLET_REQUEST_WHOLE_CORES)) keep_off_busy_cores(asked, picks);
}

void Policy::keep_off_busy_cores(const topolet_pick_request& asked, sdk::Picks& picks) const {
  const topolet_request& request = *asked.request;
  const Measured measured(request.load, *request.topology, *request.ledger);
  const Set beside = cpus_beside_busy_ones(*request.topology, *request.ledger, measured) & Set(asked.usable);
  const Set calm = Set(asked.usable) - beside;
  if (beside.empty() || calm.size() < asked.count) return;
  picks.narrow(calm.view());
  picks.reason("keeps off " + sdk::cpu_names(beside) + ": on the same cores others keep their CPUs busy");
  picks.code("beside-busy");
}

/// On whole cores the siblings of all CPUs but the last few are its own: they cost nobody anything.
void Policy::keep_to_whole_cores(const topolet_pick_request& asked, sdk::Picks& picks) const {
  const Set whole = sdk::CoreMap(*asked.request->topology).on_whole_cores(asked.usable);
  if (whole.size() < asked.count || whole == Set(asked.usable)) return;
  picks.narrow(whole.view());
  picks.reason("class LSE: whole cores");
}

/// The request pays for whole cores but the last one, of which it has a part.
void Policy::withhold_siblings(const topolet_pick_request& asked, sdk::Picks& picks) const {
  const Set siblings = siblings_of_chosen(asked);
  if (siblings.empty()) return;
  const Set taken = siblings - Set(asked.usable);
  if (!taken.empty())
    return picks.unmet("class LSE: " + sdk::cpu_names(taken) + " cannot be kept idle: reserved or used by others");
  if (siblings.size() >= sdk::CoreMap(*asked.request->topology).most_threads())
    return picks.unmet("class LSE: its request pays for idle siblings on one core, not for " +
                       sdk::cpu_names(siblings));
  picks.withhold(siblings.view());
  picks.reason(sdk::cpu_names(siblings) + (siblings.size() == 1 ? " is" : " are") + " kept idle (class LSE)");
  picks.code("siblings-idle");
}

}  // namespace topolet::load_policy
