// Questions about what fits, put to an engine that goes on placing containers.
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "tests/daemon/core_rig.hpp"
#include "tests/daemon/test_policy.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;

TEST(Engine, PlacesContainersWhileSomebodyAsksWhatFits) {
  CoreRig rig;
  std::promise<void> asked;
  std::promise<void> placed;
  const auto wait_where_fits_is_computed = [&, waits = true](const placement::PolicyRequest& request) mutable {
    if (request.workload.pod_name == "fits" && std::exchange(waits, false)) {
      asked.set_value();
      placed.get_future().wait();
    }
    return NodeSet();
  };
  rig.votes = {{std::make_shared<testing::NodePolicy>(wait_where_fits_is_computed)}};
  auto fits = std::async(std::launch::async, [&rig] { return rig.fits(std::chrono::minutes(1)); });
  asked.get_future().wait();
  rig.run({.pod = "own", .cpus = 2});
  placed.set_value();
  const auto before = fits.get();
  ASSERT_TRUE(before.has_value());
  const auto exclusive_cpus = [](const engine::Fits& told) {
    std::vector<std::uint32_t> cpus;
    for (const engine::NodeFit& node : told.nodes) cpus.push_back(node.exclusive_cpus);
    return cpus;
  };
  EXPECT_EQ(exclusive_cpus(before->fits), (std::vector<std::uint32_t>{2, 2})) << "as it was when it was asked";
  const auto now = rig.fits(std::chrono::minutes(1));
  ASSERT_TRUE(now.has_value());
  EXPECT_EQ(exclusive_cpus(now->fits), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_GT(now->fits.generation, before->fits.generation);
}

TEST(Engine, DoesNotKeepWaitingWhoAsksWhatFits) {
  CoreRig rig;
  std::promise<void> answered;
  rig.on_loop([future = answered.get_future().share()] { future.wait(); });
  const auto fits = rig.fits(std::chrono::milliseconds(1));
  answered.set_value();
  ASSERT_FALSE(fits.has_value());
  EXPECT_EQ(fits.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace topolet::daemon
