// What the plugin load does by what topoletd measures of real containers, on the machine of tests/vm/run. Its CPUs
// share one thread of the host: that something is used or waited for is seen, and not how much.
#include <gmock/gmock.h>
#include <sys/xattr.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

/// Nobody decides by less than a minute of measurements, which takes several here.
constexpr std::chrono::seconds kPatience{600};
constexpr std::int64_t kLeastMemoryHigh = 64 * kMiB;
constexpr const char* kMark = "user.topolet.memory_high";

ContainerSpec busy_loops(int count) {
  std::string loops;
  for (int i = 1; i < count; ++i) loops += "while :; do :; done & ";
  return {.image = kImage, .command = {"/bin/sh", "-c", loops + "while :; do :; done"}};
}

/// Reads and writes more pages of a file than memory.high leaves it.
ContainerSpec filling_memory() {
  return {.image = kImage,
          .command = {"/bin/sh", "-c",
                      "while :; do /bin/busybox dd if=/dev/zero of=/tmp/pages bs=65536 count=1600 2>/dev/null; done"}};
}

class MeasuredTest : public NodeTest {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers")) GTEST_SKIP() << "cgroup v1 has no memory.high";
    NodeTest::SetUp();
  }
  void start_with(const std::vector<std::string>& flags) {
    const Status serving = daemon_->start(flags);
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }
  void restart_with(const std::vector<std::string>& flags) {
    daemon_->end(SIGTERM);
    start_with(flags);
  }
  /// The next topoletd knows nothing of what this one has done.
  void lose_database() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(daemon_->state_db().string() + suffix);
  }
  bool becomes_in_time(const std::function<bool()>& is_so) {
    return wait_until([&] { return topolet_->containers().has_value() && is_so(); }, kPatience);
  }

  std::filesystem::path cgroup_of(const TestPod& actor) {
    const auto container = direct_->inspect(actor.container_id);
    const auto cgroup = container ? cgroup_cpus_of(container->pid) : std::nullopt;
    EXPECT_TRUE(cgroup) << actor.pod.name << " does not run";
    return std::filesystem::path("/sys/fs/cgroup") / std::filesystem::path(cgroup ? cgroup->path : "").relative_path();
  }
  std::string memory_high(const TestPod& actor) {
    std::string value;
    std::ifstream(cgroup_of(actor) / "memory.high") >> value;
    return value;
  }
  /// How often memory.high has held the container back.
  std::int64_t times_held_back(const TestPod& actor) {
    std::ifstream file(cgroup_of(actor) / "memory.events");
    std::int64_t count = -1;
    for (std::string name; file >> name >> count;) {
      if (name == "high") return count;
    }
    return -1;
  }
  bool is_marked(const TestPod& actor) { return ::getxattr(cgroup_of(actor).c_str(), kMark, nullptr, 0) > 0; }
  /// Returns true if the audit has such an event of the pod, with these words in its reason.
  bool was_audited(const TestPod& actor, const std::string& event, const std::string& words = "") {
    const auto rows = state_->audit(actor.pod.name);
    return rows && std::any_of(rows->begin(), rows->end(), [&](const AuditRow& row) {
             return row.event == event && row.reason.find(words) != std::string::npos;
           });
  }
};

TEST_F(MeasuredTest, MemoryHighHoldsBackWhoIsBestEffortUntilItIsTakenBack) {
  const std::vector<std::string> shares_memory = {"--plugins.enable=load", "--load.besteffort-memory=10"};
  restart_with(shares_memory);
  const TestPod web = running("web", burstable(250, 180 * kMiB));
  const TestPod batch = running("batch", besteffort(), filling_memory());
  EXPECT_TRUE(becomes_in_time([&] { return memory_high(batch) == std::to_string(kLeastMemoryHigh); }))
      << memory_high(batch);
  EXPECT_EQ(memory_high(web), "max");
  EXPECT_TRUE(becomes_in_time([&] { return is_marked(batch); }));
  EXPECT_TRUE(was_audited(batch, "narrowed"));
  EXPECT_TRUE(becomes_in_time([&] { return times_held_back(batch) > 0; }));
  const std::int64_t before = times_held_back(batch);
  EXPECT_TRUE(becomes_in_time([&] { return times_held_back(batch) > before; })) << "again and again";

  restart_with({"--plugins.enable=load"});
  EXPECT_TRUE(becomes_in_time([&] { return memory_high(batch) == "max"; })) << "the option is off";
  EXPECT_TRUE(was_audited(batch, "widened"));

  restart_with(shares_memory);
  EXPECT_TRUE(becomes_in_time([&] { return memory_high(batch) == std::to_string(kLeastMemoryHigh); }));
  const TestPod other = running("other", besteffort());
  EXPECT_TRUE(becomes_in_time([&] { return memory_high(other) == std::to_string(kLeastMemoryHigh); }));
  daemon_->end(SIGKILL);
  lose_database();
  const std::string by_another_hand = std::to_string(100 * kMiB);
  std::ofstream(cgroup_of(other) / "memory.high") << by_another_hand << std::flush;
  start_with({});
  EXPECT_TRUE(becomes_in_time([&] { return memory_high(batch) == "max"; })) << "an earlier topoletd had set it";
  EXPECT_EQ(memory_high(other), by_another_hand);
}

/// It may use so much of the pool that it runs beside the one that waits, until that is seen.
TEST_F(MeasuredTest, WhoIsBestEffortGivesWayToWhatIsMeasuredAndComesBack) {
  ASSERT_TRUE(std::filesystem::exists("/proc/pressure/cpu"));
  restart_with({"--plugins.enable=load", "--load.besteffort-percent=100"});
  const TestPod batch = running("batch", besteffort());
  const CpuSet whole = kernel(batch).cpus;
  ASSERT_EQ(whole.size(), 8U);
  const TestPod own = running("own", guaranteed(1000, 64 * kMiB));
  const CpuSet of_own = kernel(own).cpus;
  const TestPod web = running("web", burstable(250, 64 * kMiB), busy_loops(3));

  EXPECT_TRUE(becomes_in_time([&] { return was_audited(batch, "narrowed", "that others use"); })) << "CPU time is read";
  EXPECT_TRUE(becomes_in_time([&] { return was_audited(batch, "narrowed", "has waited for a CPU"); })) << "PSI is read";
  EXPECT_TRUE(becomes_in_time([&] {
    const CpuSet cpus = kernel(batch).cpus;
    return cpus.size() >= 2 && cpus.size() < whole.size() - of_own.size() && cpus == ledger(batch)->cpus;
  })) << kernel(batch).cpus.to_string();
  EXPECT_FALSE(kernel(batch).cpus.intersects(of_own));
  EXPECT_EQ(kernel(own).cpus, of_own);

  restart_with({});
  EXPECT_TRUE(becomes_in_time([&] { return kernel(batch).cpus == whole - of_own; })) << "nobody narrows it any more";
  EXPECT_TRUE(becomes_in_time([&] { return ledger(batch)->cpus == whole - of_own; }));
  EXPECT_EQ(kernel(own).cpus, of_own);
}

}  // namespace
}  // namespace topolet::integration
