#include "plugins/gpu/ranking.hpp"

#include <topolet/policy.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "plugins/gpu/options.hpp"

namespace topolet::gpu {
namespace {

using Scores = std::vector<std::int32_t>;

// Points that numa subtracts for each further node, and at most between sets of equally many nodes.
constexpr double kNodeCost = 30;
constexpr double kDistanceCost = 29;
constexpr double kWeight = kDefaultWeight;

std::int32_t points_for(double nearness) {
  return static_cast<std::int32_t>(std::lround(200 * nearness)) + TOPOLET_SCORE_MIN;
}

/// The scores from TOPOLET_SCORE_MIN to TOPOLET_SCORE_MAX may not have room for all differences in full. What fraction
/// remains, 0 to 1:
struct Scale {
  double distance = 1;  ///< of the differences in nearness between candidates with equally many local devices
  double step = 1;      ///< of the step that outweighs numa, from one number of local devices to the next
};

/// The differences in nearness shrink first: whether a device is local counts for more.
std::vector<Scale> scales_to_try() {
  constexpr int kSteps = 16;
  std::vector<Scale> all;
  for (int left = kSteps; left >= 0; --left) all.push_back({static_cast<double>(left) / kSteps, 1});
  for (int left = kSteps - 1; left >= 0; --left) all.push_back({0, static_cast<double>(left) / kSteps});
  return all;
}

/// Positions of the candidates with the same number of local devices.
using Group = std::vector<std::size_t>;

class Scorer {
 public:
  explicit Scorer(const std::vector<CandidateRank>& ranks) : ranks_(ranks), base_scores_(ranks.size(), 0) {
    for (std::size_t i = 0; i < ranks.size(); ++i) groups_[ranks[i].local].push_back(i);
    for (const auto& [_, group] : groups_) set_base_scores(group);
  }

  Scores scores() const {
    Scores scores;
    for (const Scale& scale : scales_to_try()) {
      scores = layered_scores(scale);
      const std::int32_t too_low = TOPOLET_SCORE_MIN - *std::min_element(scores.begin(), scores.end());
      const std::int32_t headroom = TOPOLET_SCORE_MAX - *std::max_element(scores.begin(), scores.end());
      for (std::int32_t& score : scores) score += std::clamp(too_low, 0, headroom);
      if (too_low <= headroom) return scores;
    }
    for (std::int32_t& score : scores) score = std::max(score, std::int32_t{TOPOLET_SCORE_MIN});
    return scores;
  }

 private:
  /// Points by nearness. Of equally near candidates those with the least penalty keep them; the others lose by how much
  /// their penalty is larger, but keep more than the next farther ones.
  void set_base_scores(const Group& group) {
    std::map<std::int32_t, std::int32_t> least_penalties;  // by points
    for (const std::size_t i : group) {
      const auto level = least_penalties.try_emplace(points_for(ranks_[i].nearness), ranks_[i].penalty).first;
      level->second = std::min(level->second, ranks_[i].penalty);
    }
    for (const std::size_t i : group) {
      const auto level = least_penalties.find(points_for(ranks_[i].nearness));
      const std::int32_t floor = level == least_penalties.begin() ? TOPOLET_SCORE_MIN : std::prev(level)->first + 1;
      base_scores_[i] = std::max(level->first - (ranks_[i].penalty - level->second), floor);
    }
  }

  /// The weighted score less what numa subtracts for the nodes of the candidate.
  double net(std::size_t i, std::int32_t score, const Scale& scale) const {
    return kWeight * score - scale.step * kNodeCost * static_cast<double>(ranks_[i].width);
  }

  /// Stacks the groups from the most local devices downwards, each as high as it may be. Scores may end up below
  /// TOPOLET_SCORE_MIN.
  Scores layered_scores(const Scale& scale) const {
    Scores scores(ranks_.size(), 0);
    std::int32_t lowest = TOPOLET_SCORE_MAX + 1;  // of the groups so far
    // The lowest, among the groups so far, of the best net score of each.
    double least_best_net = std::numeric_limits<double>::infinity();
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      compress_distances(group->second, scale, scores);
      const std::int32_t excess_points = excess_over(group->second, lowest, least_best_net, scale, scores);
      double best = -std::numeric_limits<double>::infinity();
      for (const std::size_t i : group->second) {
        scores[i] -= excess_points;
        lowest = std::min(lowest, scores[i]);
        if (ranks_[i].has_capacity) best = std::max(best, net(i, scores[i], scale));
      }
      if (std::isfinite(best)) least_best_net = std::min(least_best_net, best);
    }
    return scores;
  }

  void compress_distances(const Group& group, const Scale& scale, Scores& scores) const {
    std::int32_t highest = TOPOLET_SCORE_MIN;
    for (const std::size_t i : group) highest = std::max(highest, base_scores_[i]);
    for (const std::size_t i : group) {
      scores[i] = highest - static_cast<std::int32_t>(std::lround(scale.distance * (highest - base_scores_[i])));
    }
  }

  std::int32_t excess_over(const Group& group, std::int32_t lowest, double least_best_net, const Scale& scale,
                           const Scores& scores) const {
    std::int32_t excess_points = 0;
    for (const std::size_t i : group) {
      excess_points = std::max(excess_points, scores[i] - lowest + 1);
      if (!ranks_[i].has_capacity || !std::isfinite(least_best_net)) continue;
      const double excess = net(i, scores[i], scale) + scale.step * kDistanceCost - least_best_net;
      if (excess >= 0)
        excess_points = std::max(excess_points, static_cast<std::int32_t>(std::floor(excess / kWeight)) + 1);
    }
    return excess_points;
  }

  const std::vector<CandidateRank>& ranks_;
  std::map<std::size_t, Group> groups_;  ///< by local devices
  Scores base_scores_;
};

}  // namespace

std::optional<std::size_t> narrowest_width(const std::vector<CandidateRank>& ranks) {
  std::optional<std::size_t> narrowest;
  for (const CandidateRank& rank : ranks) {
    if (rank.has_capacity) narrowest = std::min(narrowest.value_or(rank.width), rank.width);
  }
  return narrowest;
}

void put_narrow_first(std::vector<CandidateRank>& ranks, std::size_t devices) {
  // The scale has room for a few steps only; who is that wide will not mind one node more.
  constexpr std::size_t kMostNodesCounted = 3;
  const std::optional<std::size_t> narrowest = narrowest_width(ranks);
  if (!narrowest) return;
  for (CandidateRank& rank : ranks) {
    const std::size_t more_nodes = rank.width - std::min(rank.width, *narrowest);
    rank.local += (kMostNodesCounted - std::min(more_nodes, kMostNodesCounted)) * (devices + 1);
  }
}

/// Only the best and the worst of candidates count, never how many there are. So each rank is looked at once: among
/// hundreds of candidates there are a few dozen.
std::vector<std::int32_t> scores_of(const std::vector<CandidateRank>& ranks) {
  if (ranks.empty()) return {};
  using Key = std::tuple<std::size_t, double, std::int32_t, std::size_t, bool>;
  std::map<Key, std::size_t> known;
  std::vector<CandidateRank> different;
  std::vector<std::size_t> positions;
  for (const CandidateRank& rank : ranks) {
    const Key key{rank.local, rank.nearness, rank.penalty, rank.width, rank.has_capacity};
    const auto [position, is_new] = known.try_emplace(key, different.size());
    if (is_new) different.push_back(rank);
    positions.push_back(position->second);
  }
  const Scores of_different = Scorer(different).scores();
  Scores scores;
  for (const std::size_t position : positions) scores.push_back(of_different[position]);
  return scores;
}

}  // namespace topolet::gpu
