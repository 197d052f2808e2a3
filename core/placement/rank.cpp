#include "core/placement/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace topolet::placement {
namespace {

/// From the farthest of `nodes` to the nearest of `to`. CPUs outside any node, which have none, are far from all nodes.
std::uint32_t distance_between(const topology::Topology& topology, const NodeSet& nodes, const NodeSet& to) {
  if (nodes.empty() != to.empty()) return UINT32_MAX;
  std::uint32_t farthest = 0;
  for (const std::uint32_t node : nodes) {
    std::optional<std::uint32_t> nearest;
    for (const std::uint32_t other : to) {
      if (topology.node(node) == nullptr || topology.node(other) == nullptr) continue;
      const std::uint32_t distance = topology.distance(node, other);
      nearest = nearest ? std::min(*nearest, distance) : distance;
    }
    farthest = std::max(farthest, nearest.value_or(0));
  }
  return farthest;
}

std::vector<RankedCandidate> start(const PolicyRequest& request) {
  const CpuSet usable = request.usable();
  std::vector<RankedCandidate> ranking;
  ranking.reserve(request.candidates.size());
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    RankedCandidate& ranked = ranking.emplace_back();
    ranked.position = i;
    ranked.usable = request.candidates[i].cpus & usable;
    ranked.node_count = std::max<std::size_t>(1, request.candidates[i].nodes.size());
    ranked.usable_count = ranked.usable.size();
    if (request.stay_near) {
      ranked.distance_to_stay = distance_between(*request.topology, request.candidates[i].nodes, *request.stay_near);
    }
    const char* lacks = shortage(request, ranked.usable);
    if (lacks == nullptr && !request.keep_nodes.is_subset_of(request.candidates[i].nodes))
      lacks = "it does not include the nodes of the memory that the container keeps";
    if (lacks == nullptr) continue;
    ranked.unfit = ranked.rejected = true;
    ranked.opinions.push_back({"core", "reject", 0, lacks});
  }
  return ranking;
}

void add_opinion(RankedCandidate& ranked, const Vote& vote, Verdict& verdict, bool may_reject) {
  switch (verdict.kind) {
    case Verdict::Kind::kAbstain:
      if (verdict.reason.empty()) return;
      ranked.opinions.push_back(
          {vote.policy->name(), "abstain", 0, std::move(verdict.reason), std::move(verdict.code)});
      return;
    case Verdict::Kind::kReject:
      if (may_reject) {
        ranked.rejected = true;
      } else {
        ++ranked.overruled;
      }
      ranked.opinions.push_back({vote.policy->name(), "reject", 0, std::move(verdict.reason), std::move(verdict.code)});
      return;
    case Verdict::Kind::kScore:
      ranked.scored = true;
      ranked.sum += std::int64_t{vote.weight} * verdict.score;
      ranked.opinions.push_back(
          {vote.policy->name(), "score", verdict.score, std::move(verdict.reason), std::move(verdict.code)});
      return;
  }
}

void ask(const Vote& vote, const PolicyRequest& request, std::vector<RankedCandidate>& ranking, VoteTally& tally) {
  Result<std::vector<Verdict>> verdicts = vote.policy->score(request);
  if (verdicts && verdicts->size() != request.candidates.size()) {
    verdicts = Error{Code::kInternal,
                     fmt::format("{} verdicts for {} candidates", verdicts->size(), request.candidates.size())};
  }
  if (!verdicts) return tally.lose(vote, verdicts.error());
  tally.count_reply();
  for (std::size_t i = 0; i < verdicts->size(); ++i) add_opinion(ranking[i], vote, (*verdicts)[i], !request.stay_near);
}

bool better(const PolicyRequest& request, const RankedCandidate& a, const RankedCandidate& b) {
  const auto distance = [&request](const RankedCandidate& ranked) {
    return request.candidates[ranked.position].distance;
  };
  if (a.rejected != b.rejected) return b.rejected;
  if (a.distance_to_stay != b.distance_to_stay) return a.distance_to_stay < b.distance_to_stay;
  if (a.overruled != b.overruled) return a.overruled < b.overruled;
  if (a.sum != b.sum) return a.sum > b.sum;
  return std::tuple(a.node_count, distance(a), a.usable_count, a.position) <
         std::tuple(b.node_count, distance(b), b.usable_count, b.position);
}

/// The best first. If nobody scored, the machine is, but where the container has to stay near.
void sort_ranking(const PolicyRequest& request, std::vector<RankedCandidate>& ranking) {
  const bool any_score = std::any_of(ranking.begin(), ranking.end(), [](const RankedCandidate& r) { return r.scored; });
  const auto is_machine = [&request](const RankedCandidate& r) { return r.position + 1 == request.candidates.size(); };
  std::vector<RankedCandidate*> order;
  for (RankedCandidate& ranked : ranking) order.push_back(&ranked);
  std::stable_sort(order.begin(), order.end(), [&](const RankedCandidate* a, const RankedCandidate* b) {
    if (!any_score && !request.stay_near && is_machine(*a) != is_machine(*b)) return is_machine(*a);
    return better(request, *a, *b);
  });
  std::vector<RankedCandidate> sorted;
  sorted.reserve(order.size());
  for (RankedCandidate* ranked : order) sorted.push_back(std::move(*ranked));
  ranking = std::move(sorted);
}

/// In the place of what is there from an earlier ranking.
void audit(const std::vector<RankedCandidate>& ranking, const PolicyRequest& request, Decision& decision) {
  Verdicts& verdicts = decision.verdicts;
  verdicts.candidates = static_cast<std::uint32_t>(request.candidates.size());
  verdicts.best.clear();
  verdicts.rejected.clear();
  decision.best_nodes.clear();
  decision.scored_by.clear();
  for (const RankedCandidate& ranked : ranking) {
    const NodeSet& nodes = request.candidates[ranked.position].nodes;
    for (const CandidateOpinions::Opinion& opinion : ranked.opinions) {
      auto& scored_by = decision.scored_by;
      const bool is_score = opinion.kind == "score";
      if (is_score && std::find(scored_by.begin(), scored_by.end(), opinion.policy) == scored_by.end())
        scored_by.push_back(opinion.policy);
      if (opinion.kind != "reject") continue;
      ++verdicts.rejected[opinion.policy + ": " + opinion.reason];
      verdicts.add_code(opinion.code);
    }
    if (verdicts.best.size() < kAuditedCandidates)
      verdicts.best.push_back({nodes.to_string(), ranked.sum, ranked.rejected, ranked.opinions});
    if (!ranked.rejected && decision.best_nodes.size() < kBestNodes) decision.best_nodes.push_back({nodes, ranked.sum});
  }
}

}  // namespace

std::size_t needed_cpus(const PolicyRequest& request) { return request.exclusive ? request.exclusive_cpus : 1; }

const char* shortage(const PolicyRequest& request, const CpuSet& cpus) {
  if (cpus.size() < needed_cpus(request)) return request.exclusive ? "too few free CPUs" : "no shared CPU";
  const std::size_t all = request.keep.size();
  const std::size_t kept = request.exclusive ? std::min<std::size_t>(all, request.exclusive_cpus) : all;
  return (request.keep & cpus).size() < kept ? "it does not include the CPUs that the container must keep" : nullptr;
}

std::vector<RankedCandidate> rank(const PolicyRequest& request, const Votes& votes, VoteTally& tally,
                                  Decision& decision) {
  std::vector<RankedCandidate> ranking = start(request);
  for (const Vote& vote : votes) ask(vote, request, ranking, tally);
  sort_ranking(request, ranking);
  audit(ranking, request, decision);
  return ranking;
}

void take_back_opinions(const PolicyRequest& request, const Vote& vote, std::vector<RankedCandidate>& ranking,
                        Decision& decision) {
  for (RankedCandidate& ranked : ranking) {
    ranked.sum += std::exchange(ranked.penalty, 0);
    for (const CandidateOpinions::Opinion& opinion : ranked.opinions) {
      if (opinion.policy == vote.policy->name()) ranked.sum -= std::int64_t{vote.weight} * opinion.score;
    }
    std::erase_if(ranked.opinions, [&vote](const auto& opinion) { return opinion.policy == vote.policy->name(); });
    const auto of_kind = [&ranked](const char* kind) {
      return std::count_if(ranked.opinions.begin(), ranked.opinions.end(),
                           [kind](const auto& opinion) { return opinion.kind == kind; });
    };
    const std::int64_t rejections = of_kind("reject") - (ranked.unfit ? 1 : 0);
    ranked.scored = of_kind("score") > 0;
    ranked.rejected = ranked.unfit || (rejections > 0 && !request.stay_near);
    ranked.overruled = request.stay_near ? static_cast<std::uint32_t>(rejections) : 0;
  }
  sort_ranking(request, ranking);
  audit(ranking, request, decision);
}

bool apply_penalty(const PolicyRequest& request, std::vector<RankedCandidate>& ranking, std::size_t place,
                   std::int64_t by) {
  const auto from = ranking.begin() + static_cast<std::ptrdiff_t>(place);
  from->sum -= by;
  from->penalty = by;
  const auto to = std::find_if(from + 1, ranking.end(),
                               [&](const RankedCandidate& other) { return better(request, *from, other); });
  std::rotate(from, from + 1, to);
  return to == from + 1;
}

}  // namespace topolet::placement
