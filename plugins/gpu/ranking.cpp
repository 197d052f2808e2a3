#include "plugins/gpu/ranking.hpp"

#include <topolet/policy.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "plugins/gpu/policy.hpp"

namespace topolet::gpu {
namespace {

using Scores = std::vector<std::int32_t>;

// What numa takes: for each node more, and at the most among sets of as many nodes.
constexpr double kNodeCost = 30;
constexpr double kOtherCost = 29;
constexpr double kWeight = Policy::kDefaultWeight;

std::int32_t points(double nearness) {
  return static_cast<std::int32_t>(std::lround(200 * nearness)) + TOPOLET_SCORE_MIN;
}

/// How much of its due a part gets, where the scale has no room for all.
struct Shares {
  double distance = 1;  ///< what is nearer, among those of as many local devices
  double step = 1;      ///< what outweighs numa, from one number of local devices to the next
};

/// What is nearer comes first to give way: that a device is local or not counts more.
std::vector<Shares> attempts() {
  constexpr int kSteps = 16;
  std::vector<Shares> all;
  for (int left = kSteps; left >= 0; --left) all.push_back({static_cast<double>(left) / kSteps, 1});
  for (int left = kSteps - 1; left >= 0; --left) all.push_back({0, static_cast<double>(left) / kSteps});
  return all;
}

/// Candidates of as many local devices.
using Group = std::vector<std::size_t>;

class Ranking {
 public:
  explicit Ranking(const std::vector<Rank>& ranks) : ranks_(ranks), due_(ranks.size(), 0) {
    for (std::size_t i = 0; i < ranks.size(); ++i) groups_[ranks[i].local].push_back(i);
    for (const auto& [_, group] : groups_) rank_by_nearness(group);
  }

  Scores scores() const {
    Scores scores;
    for (const Shares& shares : attempts()) {
      scores = spread_out(shares);
      const std::int32_t too_low = TOPOLET_SCORE_MIN - *std::min_element(scores.begin(), scores.end());
      const std::int32_t room = TOPOLET_SCORE_MAX - *std::max_element(scores.begin(), scores.end());
      for (std::int32_t& score : scores) score += std::clamp(too_low, 0, room);
      if (too_low <= room) return scores;
    }
    for (std::int32_t& score : scores) score = std::max(score, std::int32_t{TOPOLET_SCORE_MIN});
    return scores;
  }

 private:
  /// Points by nearness. Of equals the best keep them, the others have fewer by what they fall short of these, but
  /// never as few as the next worse ones.
  void rank_by_nearness(const Group& group) {
    std::map<std::int32_t, std::int32_t> least_shortfalls;  // by points
    for (const std::size_t i : group) {
      const auto level = least_shortfalls.try_emplace(points(ranks_[i].nearness), ranks_[i].shortfall).first;
      level->second = std::min(level->second, ranks_[i].shortfall);
    }
    for (const std::size_t i : group) {
      const auto level = least_shortfalls.find(points(ranks_[i].nearness));
      const std::int32_t floor = level == least_shortfalls.begin() ? TOPOLET_SCORE_MIN : std::prev(level)->first + 1;
      due_[i] = std::max(level->first - (ranks_[i].shortfall - level->second), floor);
    }
  }

  /// What a candidate is worth when numa has taken for its nodes.
  double net(std::size_t i, std::int32_t score, const Shares& shares) const {
    return kWeight * score - shares.step * kNodeCost * static_cast<double>(ranks_[i].width);
  }

  /// From the most local devices down, each group as high as it may be. May end below the scale.
  Scores spread_out(const Shares& shares) const {
    Scores scores(ranks_.size(), 0);
    std::int32_t lowest = TOPOLET_SCORE_MAX + 1;                  // of the groups so far
    double least_best = std::numeric_limits<double>::infinity();  // the same, of the best of each, net
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      squeeze(group->second, shares, scores);
      const std::int32_t down = too_high(group->second, lowest, least_best, shares, scores);
      double best = -std::numeric_limits<double>::infinity();
      for (const std::size_t i : group->second) {
        scores[i] -= down;
        lowest = std::min(lowest, scores[i]);
        if (ranks_[i].has_room) best = std::max(best, net(i, scores[i], shares));
      }
      if (std::isfinite(best)) least_best = std::min(least_best, best);
    }
    return scores;
  }

  void squeeze(const Group& group, const Shares& shares, Scores& scores) const {
    std::int32_t most = TOPOLET_SCORE_MIN;
    for (const std::size_t i : group) most = std::max(most, due_[i]);
    for (const std::size_t i : group) {
      scores[i] = most - static_cast<std::int32_t>(std::lround(shares.distance * (most - due_[i])));
    }
  }

  std::int32_t too_high(const Group& group, std::int32_t lowest, double least_best, const Shares& shares,
                        const Scores& scores) const {
    std::int32_t down = 0;
    for (const std::size_t i : group) {
      down = std::max(down, scores[i] - lowest + 1);
      if (!ranks_[i].has_room || !std::isfinite(least_best)) continue;
      const double above = net(i, scores[i], shares) + shares.step * kOtherCost - least_best;
      if (above >= 0) down = std::max(down, static_cast<std::int32_t>(std::floor(above / kWeight)) + 1);
    }
    return down;
  }

  const std::vector<Rank>& ranks_;
  std::map<std::size_t, Group> groups_;  ///< by local devices
  Scores due_;
};

}  // namespace

std::vector<std::int32_t> scores_of(const std::vector<Rank>& ranks) {
  return ranks.empty() ? std::vector<std::int32_t>() : Ranking(ranks).scores();
}

}  // namespace topolet::gpu
