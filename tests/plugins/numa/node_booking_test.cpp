// The memory left when containers may have theirs on any of several nodes, compared with all sets of nodes.
#include "plugins/numa/node_booking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace topolet::numa {
namespace {

using Nodes = std::vector<std::size_t>;

TEST(NumaNodeBooking, CountsOnTheOthersWhatANodeHasNotLeft) {
  NodeBooking booking({64, 64});
  booking.book(Nodes{0, 1}, 30);
  booking.book(0, 60);
  EXPECT_EQ(booking.free_on({0}), 4);
  EXPECT_EQ(booking.free_on({1}), 38);
  EXPECT_EQ(booking.free_on({0, 1}), 38);
}

TEST(NumaNodeBooking, LeavesWhatOthersCanHaveElsewhere) {
  NodeBooking booking({10, 10, 10});
  booking.book(Nodes{0, 1}, 10);
  booking.book(Nodes{1, 2}, 10);
  EXPECT_EQ(booking.free_on({0}), 10);
  EXPECT_EQ(booking.free_on({1}), 10);
  EXPECT_EQ(booking.free_on({0, 1}), 10);
  booking.book(0, 10);
  EXPECT_EQ(booking.free_on({0, 1, 2}), 0);
}

TEST(NumaNodeBooking, LeavesNothingOfANodeThatIsOverbooked) {
  NodeBooking booking({10, 10});
  booking.book(0, 15);
  booking.book(Nodes{0, 1}, 30);
  EXPECT_EQ(booking.free_on({0}), 0);
  EXPECT_EQ(booking.free_on({0, 1}), 0);
}

TEST(NumaNodeBooking, AnUnlimitedNodeHoldsEverything) {
  NodeBooking booking({10, NodeBooking::kUnlimited});
  booking.book(Nodes{0, 1}, 1000);
  booking.book(0, 10);
  EXPECT_EQ(booking.free_on({0}), 0);
  EXPECT_GT(booking.free_on({0, 1}), std::int64_t{1} << 60U);
}

/// Containers fit if, for every set of nodes, those bound to nodes of that set alone fit on it. Hence one more that is
/// bound to `nodes` can have what the tightest of the sets around `nodes` leaves.
std::int64_t least_left(const std::vector<std::int64_t>& capacity, const std::vector<std::pair<Nodes, int>>& booked,
                        const Nodes& nodes) {
  std::int64_t least = NodeBooking::kUnlimited;
  const auto is_in = [](std::uint32_t set, const Nodes& some) {
    return std::all_of(some.begin(), some.end(), [set](std::size_t node) { return (set >> node & 1U) != 0; });
  };
  for (std::uint32_t set = 0; set < 1U << capacity.size(); ++set) {
    if (!is_in(set, nodes)) continue;
    std::int64_t left = 0;
    for (std::size_t i = 0; i < capacity.size(); ++i) left += (set >> i & 1U) != 0 ? capacity[i] : 0;
    for (const auto& [bound, bytes] : booked) left -= is_in(set, bound) ? bytes : 0;
    least = std::min(least, left);
  }
  return least;
}

TEST(NumaNodeBooking, AgreesWithAllSetsOfNodes) {
  std::mt19937 random(1);
  const auto below = [&random](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  const auto some_nodes = [&](std::size_t count) {
    Nodes nodes;
    while (nodes.empty()) {
      for (std::size_t i = 0; i < count; ++i) {
        if (below(3) == 0) nodes.push_back(i);
      }
    }
    return nodes;
  };
  for (int round = 0; round < 400; ++round) {
    std::vector<std::int64_t> capacity(1 + below(6));
    for (std::int64_t& bytes : capacity) bytes = below(100);
    NodeBooking booking(capacity);
    std::vector<std::pair<Nodes, int>> booked;
    for (int i = 0; i < 12; ++i) {
      const Nodes nodes = some_nodes(capacity.size());
      const std::int64_t left = least_left(capacity, booked, nodes);
      ASSERT_EQ(booking.free_on(nodes), left) << "round " << round << ", container " << i;
      const auto bytes = static_cast<int>(below(static_cast<std::uint32_t>(left) + 1));
      nodes.size() == 1 ? booking.book(nodes.front(), bytes) : booking.book(nodes, bytes);
      booked.emplace_back(nodes, bytes);
    }
  }
}

}  // namespace
}  // namespace topolet::numa
