// What real containers use, as topoletd measures it, and what the plugin load does by it. Each test takes two minutes,
// as nobody decides by less than one of measurements.
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

class MeasuredTest : public NodeTest {
 protected:
  void restart_with(const std::vector<std::string>& flags) {
    daemon_->end(SIGTERM);
    const Status serving = daemon_->start(flags);
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }
  /// Creates containers until one is decided on by what is measured; what that was.
  nlohmann::json measured() {
    std::string text;
    int number = 0;
    wait_until(
        [&] {
          std::this_thread::sleep_for(std::chrono::seconds(10));
          const TestPod probe = created("probe-" + std::to_string(++number), burstable(10, kMiB));
          text = state_->measured_for(probe.pod.name).value_or("");
          return !text.empty();
        },
        std::chrono::seconds(300));
    return nlohmann::json::parse(text, nullptr, false);
  }
};

TEST_F(MeasuredTest, BestEffortGivesWayToWhatIsMeasuredAndComesBack) {
  const CpuSet pool = whole_pool();
  restart_with({"--plugins.enable=load"});
  const TestPod busy = running("busy", burstable(250, 64 * kMiB),
                               {.image = kImage, .command = {"/bin/sh", "-c", "while :; do :; done"}});
  const TestPod batch = running("batch", besteffort());
  const nlohmann::json sample = measured();
  ASSERT_TRUE(sample.is_object()) << sample;
  const auto container = sample["containers"].find(busy.container_id);
  ASSERT_NE(container, sample["containers"].end()) << sample;
  EXPECT_GT((*container)["cpu_milli"], 100) << "it uses all that it can get";
  const bool is_v2 = std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers");
  EXPECT_EQ(container->contains("psi_some_permille"), is_v2 && std::filesystem::exists("/proc/pressure/cpu"));
  // Of two CPUs or fewer nothing is taken.
  if (pool.size() > 4) {
    EXPECT_TRUE(becomes([&] { return kernel(batch).cpus.size() < pool.size(); })) << "it gives way";
    EXPECT_TRUE(becomes([&] { return kernel(batch).cpus == ledger(batch)->cpus; }));
    EXPECT_GE(kernel(batch).cpus.size(), 2U);
    EXPECT_EQ(kernel(busy).cpus.size(), ledger(busy)->cpus.size());
  } else {
    EXPECT_EQ(kernel(batch).cpus, pool);
  }
  restart_with({});
  EXPECT_TRUE(becomes([&] { return kernel(batch).cpus == pool; })) << "what it left is given back without the plugin";
}

}  // namespace
}  // namespace topolet::integration
