#include "cluster/extender/rank.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace topolet::extender {
namespace {

constexpr int kBest = 10;

/// The scores of nodes that need a number of zones.
struct Range {
  int best = 0;
  int worst = 0;
};
constexpr std::array<Range, 3> kByZones = {{{10, 7}, {6, 4}, {3, 1}}};

struct Candidate {
  std::size_t position = 0;  ///< among the names
  std::int64_t preference = 0;
  std::int64_t effective = 0;

  /// More is better.
  std::pair<std::int64_t, std::int64_t> key() const { return {preference, effective}; }
};

/// From the best to the worst, in equal steps; equal ones have an equal score.
void spread_scores(std::vector<Candidate>& candidates, Range range,
                   std::vector<std::pair<std::string_view, int>>& scores) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.key() > b.key(); });
  std::size_t different = candidates.empty() ? 0 : 1;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    different += candidates[i].key() != candidates[i - 1].key() ? 1 : 0;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0 && candidates[i].key() != candidates[i - 1].key()) ++rank;
    const auto steps = static_cast<std::size_t>(range.best - range.worst);
    const std::size_t below = different > 1 ? (rank * steps + (different - 2)) / (different - 1) : 0;
    scores[candidates[i].position].second = range.best - static_cast<int>(below);
  }
}

}  // namespace

FilterResult filter_nodes(const ZoneBook& book, const Demand& demand, const std::vector<std::string_view>& names) {
  FilterResult result;
  result.node_names.reserve(names.size());
  for (const std::string_view name : names) {
    const Status fits = book.check(name, demand);
    const bool passes =
        fits.has_value() || (fits.error().code == Code::kNotFound && demand.policy != ZonePolicy::kSingle);
    if (passes) {
      result.node_names.push_back(name);
      continue;
    }
    // If it counted as helped by more evictions, another node would be tried while its victims end.
    const bool is_kept = name == demand.nominated_node || book.kept().has(name, demand.uid);
    (is_kept ? result.failed : result.unresolvable).emplace_back(name, "topolet: " + fits.error().message);
  }
  return result;
}

std::vector<std::pair<std::string_view, int>> score_nodes(const ZoneBook& book, const Demand& demand,
                                                          const std::vector<std::string_view>& names) {
  std::vector<std::pair<std::string_view, int>> scores;
  scores.reserve(names.size());
  std::array<std::vector<Candidate>, kByZones.size()> by_zones;
  const bool any = demand.policy == ZonePolicy::kAny;
  for (const std::string_view name : names) {
    scores.emplace_back(name, 0);
    const Result<Fit> fit = book.fit(name, demand);
    if (!fit) continue;
    const std::size_t zones = any ? 1 : std::clamp<std::size_t>(fit->most_zones, 1, kByZones.size());
    by_zones[zones - 1].push_back({scores.size() - 1, fit->preference, fit->effective});
  }
  for (std::size_t i = 0; i < by_zones.size(); ++i) {
    const Range range = any ? Range{kBest, 1} : kByZones[i];
    spread_scores(by_zones[i], range, scores);
  }
  return scores;
}

}  // namespace topolet::extender
