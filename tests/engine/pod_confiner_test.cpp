#include "core/engine/converge/pod_confiner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Allocation foreign(const std::string& name) {
  Allocation allocation = shared(name);
  allocation.placement = {placement::Mode::kForeign, {}, {}, {}};
  allocation.within = {};
  allocation.workload.runtime_handler = "kata";
  return allocation;
}

class PodConfinerTest : public ConvergeTest {
 protected:
  fs::path make_cgroup(const std::string& pod) {
    const fs::path directory = root_ / "kubepods" / ("poduid-" + pod);
    fs::create_directories(directory);
    std::ofstream(directory / "cpuset.cpus") << '\n';
    std::ofstream(directory / "cpuset.cpus.effective") << "4\n";  // of whatever it is set to
    return directory;
  }
  static std::string cpus_of(const fs::path& cgroup) {
    std::ifstream in(cgroup / "cpuset.cpus");
    std::string line;
    std::getline(in, line);
    return line;
  }
  bool is_confined() const { return committer_->ledger().pods().at("sandbox-vm").confined; }
  void confine(bool enabled = true) {
    confiner_.emplace(PodConfiner::Deps{loop_, *committer_, PodCgroups(CpusetHierarchy{root_, false}), placed_handlers_,
                                        enabled, *log_});
    committer_->subscribe(*confiner_);
    confiner_->on_reconciled();
    loop_.run();
  }
  void take(const std::string& name, const CpuSet& cpus) {
    Plan plan;
    plan.decision.placement = {placement::Mode::kExclusive, cpus, {}, {}};
    committer_->commit(event::CreateAdmitted{guaranteed(name, static_cast<std::int64_t>(cpus.size())), plan},
                       [this, cgroup = root_ / "kubepods/poduid-vm"] { seen_when_admitted_ = cpus_of(cgroup); });
    loop_.run();
  }

  TempDir cgroups_;
  const fs::path root_ = cgroups_.path();
  std::optional<PodConfiner> confiner_;
  std::string seen_when_admitted_;
};

TEST_F(PodConfinerTest, KeepsForeignPodsInThePoolBeforeAnybodyGetsCpusOfTheirOwn) {
  const fs::path pod = make_cgroup("vm");
  begin({foreign("vm")}, {pod_of("vm")});
  confine();
  EXPECT_EQ(cpus_of(pod), "0-7");
  take("x", {2, 3});
  EXPECT_EQ(seen_when_admitted_, "0-1,4-7");
  committer_->commit(event::Ended{guaranteed("x", 2).key, "removed"});
  loop_.run();
  EXPECT_EQ(cpus_of(pod), "0-7");
}

TEST_F(PodConfinerTest, TakesBackWhatAnEarlierOneHasSet) {
  const fs::path pod = make_cgroup("vm");
  begin({foreign("vm"), exclusive("x", {0})}, {pod_of("vm"), pod_of("x")});
  confine();
  EXPECT_EQ(cpus_of(pod), "1-7");
  EXPECT_TRUE(is_confined());
  confiner_->on_reconciled();
  confine(false);
  EXPECT_EQ(cpus_of(pod), "");
  EXPECT_FALSE(is_confined());
}

TEST_F(PodConfinerTest, LeavesAloneWhatItDidNotSet) {
  const fs::path pod = make_cgroup("vm");
  std::ofstream(pod / "cpuset.cpus") << "3\n";
  begin({foreign("vm"), exclusive("x", {0})}, {pod_of("vm"), pod_of("x")});
  confine(false);
  take("y", {1});
  EXPECT_EQ(cpus_of(pod), "3");
}

TEST_F(PodConfinerTest, TellsWhoCannotBeKeptThereAndTriesAgain) {
  begin({foreign("vm")}, {pod_of("vm")});
  confine();
  ASSERT_EQ(confiner_->failures().count("default/vm"), 1U);
  EXPECT_THAT(confiner_->failures().at("default/vm"), HasSubstr("there is no cgroup of pod uid-vm"));
  EXPECT_FALSE(is_confined());
  const fs::path pod = make_cgroup("vm");
  take("x", {2, 3});
  EXPECT_THAT(confiner_->failures(), IsEmpty());
  EXPECT_EQ(cpus_of(pod), "0-1,4-7");
}

/// As while an image is pulled, or between the attempts of its container.
TEST_F(PodConfinerTest, ConfinesAPodWithoutContainersAndGivesItsCpusBack) {
  const fs::path pod = make_cgroup("vm");
  begin({exclusive("x", {0})}, {pod_of("x")});
  confine();
  operations::Sandbox sandbox = pod_of("vm").sandbox;
  sandbox.runtime_handler = "kata-qemu";
  committer_->commit(event::PodSeen{sandbox}, [this, pod] { seen_when_admitted_ = cpus_of(pod); });
  loop_.run();
  EXPECT_EQ(seen_when_admitted_, "1-7") << "before the kubelet hears that it runs";
  EXPECT_TRUE(is_confined());
  take("y", {1});
  EXPECT_EQ(cpus_of(pod), "2-7");
  confine(false);
  EXPECT_EQ(cpus_of(pod), "");
  EXPECT_FALSE(is_confined());
}

TEST_F(PodConfinerTest, RemembersWhatWasWrittenThoughNobodyKnowsWithWhatEffect) {
  const fs::path pod = make_cgroup("vm");
  fs::remove(pod / "cpuset.cpus.effective");
  begin({foreign("vm"), exclusive("x", {0})}, {pod_of("vm"), pod_of("x")});
  confine();
  EXPECT_EQ(confiner_->failures().count("default/vm"), 1U);
  EXPECT_TRUE(is_confined());
  confine(false);
  EXPECT_EQ(cpus_of(pod), "");
}

TEST_F(PodConfinerTest, ConfinesAPodWhoseContainerIsJustBeingCreated) {
  const fs::path pod = make_cgroup("vm");
  begin({exclusive("x", {0})}, {pod_of("vm"), pod_of("x")});
  confine();
  event::Adopted noted{foreign("vm").workload, {}, {}, AuditEvent::kForeign, {}, {}};
  noted.plan.decision.placement.mode = placement::Mode::kForeign;
  noted.container.id = "c-vm";
  noted.container.state = operations::ContainerState::kCreated;
  committer_->commit(std::move(noted), [this, pod] { seen_when_admitted_ = cpus_of(pod); });
  loop_.run();
  EXPECT_EQ(seen_when_admitted_, "1-7");
}

}  // namespace
}  // namespace topolet::engine
