// Scores compared with what numa subtracts for more nodes, over all node sets of many machines.
#include "plugins/gpu/ranking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace topolet::gpu {
namespace {

constexpr int kWeight = 4;
constexpr int kNodeCost = 30;      // numa's, for one more node
constexpr int kDistanceCost = 29;  // numa's, at most, between sets of equally many nodes

/// Every set of nodes of a machine with random distances, devices and free nodes.
std::vector<CandidateRank> ranks_of(std::size_t nodes, std::size_t devices, std::mt19937& random) {
  const std::uint32_t farthest = 1 + random() % 30;
  std::vector<std::vector<double>> distances(nodes, std::vector<double>(nodes, 10));
  for (std::size_t i = 0; i < nodes; ++i) {
    for (std::size_t j = 0; j < i; ++j) distances[i][j] = distances[j][i] = 11 + random() % farthest;
  }
  std::vector<std::size_t> device_nodes;
  for (std::size_t device = 0; device < devices; ++device) device_nodes.push_back(random() % nodes);
  const std::uint32_t full = random() % (1U << nodes);
  std::vector<CandidateRank> ranks;
  for (std::uint32_t chosen = 1; chosen < 1U << nodes; ++chosen) {
    CandidateRank rank;
    for (const std::size_t device_node : device_nodes) {
      double best = 0;
      for (std::size_t node = 0; node < nodes; ++node) {
        if ((chosen >> node & 1U) == 0) continue;
        best = std::max(best, node == device_node ? 1 : std::min(0.9, 10 / distances[node][device_node]));
      }
      rank.local += best == 1 ? 1 : 0;
      rank.nearness += best / static_cast<double>(devices);
    }
    for (std::size_t node = 0; node < nodes; ++node) rank.width += chosen >> node & 1U;
    rank.penalty = static_cast<std::int32_t>(random() % 8);
    rank.has_capacity = (chosen & ~full) != 0;
    ranks.push_back(rank);
  }
  return ranks;
}

/// For each number of local devices: the best net score of the sets with capacity, after what numa subtracts for nodes.
std::map<std::size_t, int> best_of(const std::vector<CandidateRank>& ranks, const std::vector<std::int32_t>& scores) {
  std::map<std::size_t, int> best;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].has_capacity) continue;
    const int sum = kWeight * scores[i] - kNodeCost * static_cast<int>(ranks[i].width);
    const auto entry = best.try_emplace(ranks[i].local, sum).first;
    entry->second = std::max(entry->second, sum);
  }
  return best;
}

void expect_order(const std::vector<CandidateRank>& ranks, const std::vector<std::int32_t>& scores) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ASSERT_GE(scores[i], -100);
    ASSERT_LE(scores[i], 100);
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      if (ranks[i].local > ranks[j].local) {
        ASSERT_GT(scores[i], scores[j]);
      } else if (ranks[i].local == ranks[j].local && ranks[i].nearness > ranks[j].nearness + 0.005) {
        ASSERT_GE(scores[i], scores[j]);
      }
    }
  }
}

TEST(Scores, LetOneMoreDeviceOutweighNumaUpToSixteenOnEightNodes) {
  std::mt19937 random(1);
  for (std::size_t nodes = 2; nodes <= 8; ++nodes) {
    for (std::size_t devices = 1; devices <= 16; ++devices) {
      for (int times = 0; times < 6; ++times) {
        const std::vector<CandidateRank> ranks = ranks_of(nodes, devices, random);
        const std::vector<std::int32_t> scores = scores_of(ranks);
        SCOPED_TRACE(std::to_string(devices) + " devices, nodes: " + std::to_string(nodes));
        ASSERT_NO_FATAL_FAILURE(expect_order(ranks, scores));
        const auto best = best_of(ranks, scores);
        for (auto more = best.begin(); more != best.end(); ++more) {
          for (auto fewer = best.begin(); fewer != more; ++fewer) {
            ASSERT_GT(more->second - kDistanceCost, fewer->second) << more->first << " and " << fewer->first;
          }
        }
      }
    }
  }
}

TEST(Scores, KeepTheOrderOfMoreDevicesThanTheScaleHasPointsFor) {
  std::vector<CandidateRank> ranks;
  for (std::size_t local = 0; local < 1000; ++local) ranks.push_back({local, 0.5, 0, local + 1, true});
  const std::vector<std::int32_t> scores = scores_of(ranks);
  EXPECT_TRUE(std::is_sorted(scores.begin(), scores.end()));
  EXPECT_EQ(scores.front(), -100);
  EXPECT_EQ(scores.back(), 100);
  EXPECT_GT(scores[999], scores[998]);
}

TEST(Scores, CountDistancesAmongEquals) {
  const auto scores = scores_of({{2, 1, 0, 2, true}, {1, 0.9, 0, 1, true}, {1, 0.6, 0, 1, true}, {1, 0.6, 2, 1, true}});
  EXPECT_EQ(scores, (std::vector<std::int32_t>{100, 80, 20, 18}));
}

TEST(Scores, AreEmptyWithoutCandidates) { EXPECT_TRUE(scores_of({}).empty()); }

}  // namespace
}  // namespace topolet::gpu
