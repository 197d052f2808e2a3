#include "core/placement/rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace topolet {
namespace {

/// What the workload can get of the candidate.
CpuSet usable_of(const Candidate& candidate, const PolicyRequest& request, const DecideRules& rules) {
  if (!request.exclusive) return candidate.cpus & shared_cpus_open_to(request, rules);
  return candidate.cpus & request.offered();
}

const char* too_few(const PolicyRequest& request, const CpuSet& usable) {
  if (!request.exclusive) return "no shared CPUs";
  return usable.size() < request.exclusive_cpus ? "too few free CPUs" : "without the CPUs that the container has";
}

std::vector<Ranked> start(const PolicyRequest& request, const DecideRules& rules) {
  std::vector<Ranked> ranking;
  ranking.reserve(request.candidates.size());
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    Ranked& ranked = ranking.emplace_back();
    ranked.position = i;
    ranked.usable = usable_of(request.candidates[i], request, rules);
    ranked.width = request.candidates[i].nodes.size();
    ranked.room = ranked.usable.size();
    if (are_enough(request, ranked.usable)) continue;
    ranked.rejected = true;
    ranked.words.push_back({"core", "reject", 0, too_few(request, ranked.usable)});
  }
  return ranking;
}

void add_word(Ranked& ranked, const Voter& voter, Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::kAbstain:
      if (verdict.reason.empty()) return;
      ranked.words.push_back({voter.policy->name(), "abstain", 0, std::move(verdict.reason)});
      return;
    case Verdict::Kind::kReject:
      ranked.rejected = true;
      ranked.words.push_back({voter.policy->name(), "reject", 0, std::move(verdict.reason)});
      return;
    case Verdict::Kind::kScore:
      ranked.scored = true;
      ranked.sum += std::int64_t{voter.weight} * verdict.score;
      ranked.words.push_back({voter.policy->name(), "score", verdict.score, std::move(verdict.reason)});
      return;
  }
}

void ask(const Voter& voter, const PolicyRequest& request, std::vector<Ranked>& ranking, Votes& votes) {
  Result<std::vector<Verdict>> verdicts = voter.policy->score(request);
  if (verdicts && verdicts->size() != request.candidates.size()) {
    verdicts = Error{Code::kInternal,
                     fmt::format("{} verdicts for {} candidates", verdicts->size(), request.candidates.size())};
  }
  if (!verdicts) return votes.lose(voter, verdicts.error());
  votes.count_answer();
  for (std::size_t i = 0; i < verdicts->size(); ++i) add_word(ranking[i], voter, (*verdicts)[i]);
}

bool better(const PolicyRequest& request, const Ranked& a, const Ranked& b) {
  const auto distance = [&request](const Ranked& ranked) { return request.candidates[ranked.position].distance; };
  if (a.rejected != b.rejected) return b.rejected;
  if (a.sum != b.sum) return a.sum > b.sum;
  return std::tuple(a.width, distance(a), a.room, a.position) < std::tuple(b.width, distance(b), b.room, b.position);
}

void audit(const std::vector<Ranked>& ranking, const PolicyRequest& request, Verdicts& verdicts) {
  verdicts.candidates = static_cast<std::uint32_t>(request.candidates.size());
  for (const Ranked& ranked : ranking) {
    for (const CandidateVerdict::Word& word : ranked.words) {
      if (word.kind == "reject") ++verdicts.rejected[word.policy + ": " + word.reason];
    }
    if (verdicts.best.size() == kAuditedCandidates) continue;
    verdicts.best.push_back(
        {request.candidates[ranked.position].nodes.to_string(), ranked.sum, ranked.rejected, ranked.words});
  }
}

}  // namespace

Mode shared_mode(const PolicyRequest& request, const DecideRules& rules) {
  return in_reserved_namespace(request.workload, rules) ? Mode::kReserved : Mode::kShared;
}

CpuSet shared_cpus_open_to(const PolicyRequest& request, const DecideRules& rules) {
  const LedgerView& ledger = request.ledger;
  return shared_mode(request, rules) == Mode::kReserved ? ledger.pool | ledger.free_reserved() : ledger.pool;
}

std::size_t needed_cpus(const PolicyRequest& request) { return request.exclusive ? request.exclusive_cpus : 1; }

bool are_enough(const PolicyRequest& request, const CpuSet& cpus) {
  if (cpus.size() < needed_cpus(request)) return false;
  if (!request.exclusive) return true;
  return (request.keep & cpus).size() >= std::min<std::size_t>(request.keep.size(), request.exclusive_cpus);
}

std::vector<Ranked> rank(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters,
                         Votes& votes, Decision& decision) {
  std::vector<Ranked> ranking = start(request, rules);
  for (const Voter& voter : voters) ask(voter, request, ranking, votes);
  const bool any_score = std::any_of(ranking.begin(), ranking.end(), [](const Ranked& r) { return r.scored; });
  const auto is_machine = [&request](const Ranked& r) { return r.position + 1 == request.candidates.size(); };
  std::stable_sort(ranking.begin(), ranking.end(), [&](const Ranked& a, const Ranked& b) {
    if (!any_score && is_machine(a) != is_machine(b)) return is_machine(a);
    return better(request, a, b);
  });
  audit(ranking, request, decision.verdicts);
  return ranking;
}

bool lower(const PolicyRequest& request, std::vector<Ranked>& ranking, std::size_t place, std::int64_t by) {
  const auto from = ranking.begin() + static_cast<std::ptrdiff_t>(place);
  from->sum -= by;
  from->lowered = true;
  const auto to =
      std::find_if(from + 1, ranking.end(), [&](const Ranked& other) { return better(request, *from, other); });
  std::rotate(from, from + 1, to);
  return to == from + 1;
}

}  // namespace topolet
