// The room of a node while a pod's init containers run: the agent's question, and topoletd's answer to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cluster/agent/kubernetes/pending.hpp"
#include "core/engine/planning/fits.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/placement/decide.hpp"
#include "core/watch/messages.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::agent {
namespace {

using engine::exclusive;
using engine::shared;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kGibi = std::int64_t{1} << 30U;

json asking(const std::string& name, const std::string& cpu, const std::string& memory = "1Gi") {
  return {{"name", name},
          {"resources",
           {{"requests", {{"cpu", cpu}, {"memory", memory}}}, {"limits", {{"cpu", cpu}, {"memory", memory}}}}}};
}
json sidecar_asking(const std::string& name, const std::string& cpu) {
  json made = asking(name, cpu);
  made["restartPolicy"] = "Always";
  return made;
}

/// One node if that is enough, or one only.
class FewestNodes final : public placement::Policy {
 public:
  explicit FewestNodes(bool is_one_only) : is_one_only_(is_one_only) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    std::vector<placement::Verdict> verdicts;
    for (const placement::Candidate& candidate : request.candidates) {
      const bool is_one = candidate.nodes.size() == 1;
      const auto kind = is_one_only_ && !is_one ? placement::Verdict::Kind::kReject : placement::Verdict::Kind::kScore;
      verdicts.push_back({kind, is_one ? 100 : 0, "by nodes"});
    }
    return verdicts;
  }
  Result<placement::Pick> pick(const placement::PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override {
    return placement::Pick();
  }

 private:
  const bool is_one_only_;
  std::string name_ = "fewest";
};

/// Two nodes with ten CPUs each.
class PendingFits : public ::testing::Test {
 protected:
  explicit PendingFits(const std::string& machine = "node:2 core:10 pu:1")
      : topology_(topolet::testing::machine(machine)) {}

  json pod(const std::vector<json>& containers, const std::vector<json>& init_containers) const {
    return {{"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "uid-p"}, {"annotations", annotations_}}},
            {"spec", {{"containers", containers}, {"initContainers", init_containers}}},
            {"status", status_}};
  }
  /// The pod's container, on CPUs of its own or in the pool.
  void book(const std::string& name, const CpuSet& cpus, std::int64_t gibibytes = 1,
            engine::Phase phase = engine::Phase::kRunning) {
    book(cpus.empty() ? shared(name, phase, topology_->allowed) : exclusive(name, cpus, phase), name, gibibytes);
  }
  void book(engine::Allocation allocation, const std::string& name, std::int64_t gibibytes = 1) {
    allocation.workload.key = {"uid-p", name, 0, "sandbox-p"};
    allocation.workload.demand.memory_request_bytes = allocation.workload.demand.memory_limit_bytes = gibibytes * kGibi;
    allocations_.push_back(std::move(allocation));
  }
  void book_another(const CpuSet& cpus) { allocations_.push_back(exclusive("another", cpus)); }

  engine::Ledger ledger() const {
    return engine::ledger_of(allocations_, {}, {topology_->allowed, CpuSet(), CpuSet()});
  }
  engine::Fits ask(const std::vector<json>& pods) const {
    const engine::Ledger held = ledger();
    watch::v1::Snapshot node;
    for (const auto& [key, allocation] : held.allocations()) *node.add_containers() = watch::container_of(allocation);
    watch::v1::FitsRequest request;
    for (const json& pod : pods) {
      for (const auto& pending : pending_containers(api::read_pod(pod), booked_containers(node)))
        *request.add_pending() = pending;
    }
    const auto pending = watch::pending_of(request);
    EXPECT_TRUE(pending.has_value());
    return compute(*pending);
  }
  engine::Fits compute(const std::vector<engine::PendingContainer>& pending) const {
    const engine::Placer placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                                 [policy = std::make_shared<FewestNodes>(is_one_only_)](
                                     const auto& asked, const placement::PlacementRules& rules) {
                                   return decide(*asked, rules, {{policy, 1, true}});
                                 }});
    return compute_fits(placer, ledger(), pending);
  }
  std::vector<std::uint32_t> available(const json& pod) { return available_for({pod}); }
  std::vector<std::uint32_t> available_for(const std::vector<json>& pods) {
    last_ = ask(pods);
    std::vector<std::uint32_t> cpus;
    for (const engine::NodeFit& node : last_.nodes) cpus.push_back(node.exclusive_cpus);
    return cpus;
  }

  std::shared_ptr<const topology::Topology> topology_;
  placement::PlacementRules rules_;
  bool is_one_only_ = false;
  std::vector<engine::Allocation> allocations_;
  json annotations_ = json::object();
  json status_ = {{"phase", "Pending"}, {"qosClass", "Guaranteed"}};
  engine::Fits last_;
};

TEST_F(PendingFits, CountAMainContainerWholeWhileASmallInitContainerRuns) {
  const json ten = pod({asking("main", "10")}, {asking("init", "500m")});
  EXPECT_THAT(available(ten), ElementsAre(0, 9)) << "nothing of it is there yet";
  book("init", {});
  EXPECT_THAT(available(ten), ElementsAre(0, 9));
  EXPECT_THAT(last_.unplaced, IsEmpty());
}

TEST_F(PendingFits, CreditAnInitContainerWhereItIs) {
  const json two = pod({asking("main", "6"), asking("second", "6")}, {asking("init", "8")});
  EXPECT_THAT(available(two), ElementsAre(2, 4)) << "nothing of it is there yet";
  book("init", CpuSet::range(0, 7));
  EXPECT_THAT(available(two), ElementsAre(2, 4));
}

TEST_F(PendingFits, CountTheMostOfSeveralInitContainersOnEachNode) {
  const json made = pod({asking("main", "3")}, {asking("i", "2"), asking("j", "7"), asking("k", "4")});
  EXPECT_THAT(available(made), ElementsAre(3, 10));
  book("i", CpuSet::range(10, 11));
  EXPECT_THAT(available(made), ElementsAre(3, 8)) << "one that runs holds what it has until the others begin";
  status_["initContainerStatuses"] = {{{"name", "i"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}};
  allocations_.clear();
  book("j", CpuSet::range(10, 16));
  EXPECT_THAT(available(pod({asking("main", "3")}, {asking("i", "2"), asking("j", "7"), asking("k", "4")})),
              ElementsAre(6, 3));
}

TEST_F(PendingFits, LeaveSidecarsBesideTheMainContainers) {
  const json made = pod({asking("main", "6")}, {sidecar_asking("side", "3"), asking("init", "8")});
  EXPECT_THAT(available(made), ElementsAre(1, 2)) << "3 and 6 on the first node, and before that 8 on the second";
  book("side", CpuSet::range(0, 2));
  book("init", CpuSet::range(10, 17));
  EXPECT_THAT(available(made), ElementsAre(1, 2));
  const json later = pod({asking("main", "6")}, {asking("init", "8"), sidecar_asking("side", "3")});
  allocations_.clear();
  book("init", CpuSet::range(0, 7));
  EXPECT_THAT(available(later), ElementsAre(1, 10)) << "the sidecar has some of the init container's room";
}

TEST_F(PendingFits, CreditNothingOnANodeWhereTheMainContainerIsNot) {
  annotations_ = {{"topolet.io/numa-policy", "restricted"}};
  book("init", CpuSet::range(0, 3));
  book_another(CpuSet::range(4, 5));
  EXPECT_THAT(available(pod({asking("main", "10")}, {asking("init", "4")})), ElementsAre(3, 0))
      << "main needs the second node, and one CPU stays shared";
}

TEST_F(PendingFits, CountAnInitContainerThatBeginsAgain) {
  const json made = pod({asking("main", "2")}, {asking("init", "8")});
  book("init", CpuSet::range(0, 7), 1, engine::Phase::kCrashed);
  EXPECT_THAT(available(made), ElementsAre(2, 10)) << "its CPUs are kept for it";
  allocations_.clear();
  book("main", CpuSet::range(0, 1), 1, engine::Phase::kCrashed);
  EXPECT_THAT(available(made), ElementsAre(2, 10)) << "main has ended, too: its CPUs are kept for it, but make way";
}

TEST_F(PendingFits, CountNoInitContainerBehindOneThatRuns) {
  const json made = pod({asking("main", "2"), asking("second", "3")}, {asking("init", "8")});
  book("main", CpuSet::range(0, 1));
  EXPECT_THAT(available(made), ElementsAre(5, 10)) << "though the API server does not know yet that it has ended";
}

TEST_F(PendingFits, CountEachPodAtItsMost) {
  json first = pod({asking("main", "5")}, {asking("init", "8")});
  json other = first;
  other["metadata"]["uid"] = "uid-other";
  other["metadata"]["name"] = "other";
  EXPECT_THAT(available_for({first, other}), ElementsAre(2, 2));
  book("init", CpuSet::range(0, 7));
  EXPECT_THAT(available_for({first, other}), ElementsAre(2, 2));
}

TEST_F(PendingFits, CountMemoryAndHugePagesAtTheMostOfEachNode) {
  rules_.min_shared_cpus = 0;
  json init = asking("init", "8", "6Gi");
  init["resources"]["limits"]["hugepages-2Mi"] = init["resources"]["requests"]["hugepages-2Mi"] = "8Mi";
  json main = asking("main", "6", "5Gi");
  main["resources"]["limits"]["hugepages-2Mi"] = main["resources"]["requests"]["hugepages-2Mi"] = "2Mi";
  engine::Allocation held = exclusive("init", CpuSet::range(0, 7));
  held.workload.demand.hugepage_limit_bytes["2MB"] = 8 << 20;
  book(std::move(held), "init", 6);
  available(pod({main, asking("second", "6", "4Gi")}, {init}));
  ASSERT_THAT(last_.nodes, SizeIs(2));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 6 * kGibi);
  EXPECT_EQ(last_.nodes[1].booked_memory_bytes, 4 * kGibi);
  EXPECT_THAT(last_.nodes[0].booked_huge_page_bytes, ElementsAre(std::pair("2MB", 8 << 20)));
  EXPECT_THAT(last_.nodes[1].booked_huge_page_bytes, IsEmpty());
}

TEST_F(PendingFits, LeaveTheCpusOfAPodAsAWholeShared) {
  json whole = pod({{{"name", "main"}}}, {asking("init", "500m")});
  whole["spec"]["resources"]["requests"] = {{"cpu", "8"}, {"memory", "4Gi"}};
  EXPECT_THAT(available(whole), ElementsAre(10, 10)) << "its containers request none of their own";
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes + last_.nodes[1].booked_memory_bytes, 4 * kGibi);
  book("init", {});
  EXPECT_THAT(available(whole), ElementsAre(10, 10));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes + last_.nodes[1].booked_memory_bytes, 4 * kGibi);
}

/// A container of this size, on CPUs of its own; it has one GiB.
std::vector<json> grown(const std::string& cpus, const std::string& memory = "1Gi") {
  return {asking("main", cpus, memory)};
}

TEST_F(PendingFits, CountAResizeWhereTheContainerIs) {
  is_one_only_ = true;
  book("main", CpuSet::range(0, 3));
  EXPECT_THAT(available(pod(grown("6"), {})), ElementsAre(4, 10));
  EXPECT_THAT(last_.unplaced, IsEmpty());
  EXPECT_THAT(available(pod(grown("10"), {})), ElementsAre(0, 9)) << "one stays shared";
}

TEST_F(PendingFits, TakeNoOtherNodeForAResizeThatDoesNotFitThere) {
  is_one_only_ = true;
  book("main", CpuSet::range(0, 3));
  book_another(CpuSet::range(4, 8));
  EXPECT_THAT(available(pod(grown("8"), {})), ElementsAre(1, 10)) << "it would be denied";
  ASSERT_THAT(last_.unplaced, SizeIs(1));
  EXPECT_EQ(last_.unplaced[0].key.name, "(growth of main)");
}

TEST_F(PendingFits, TakeAnotherNodeForAResizeWherePoliciesGrantIt) {
  book("main", CpuSet::range(0, 3));
  book_another(CpuSet::range(4, 8));
  EXPECT_THAT(available(pod(grown("8"), {})), ElementsAre(0, 6)) << "one stays shared";
  EXPECT_THAT(last_.unplaced, IsEmpty());
}

TEST_F(PendingFits, CountAResizeOfAContainerOnSeveralNodesOnThese) {
  book("main", CpuSet::range(8, 11));
  book_another(CpuSet::range(0, 7));
  EXPECT_THAT(available(pod(grown("6"), {})), ElementsAre(0, 5)) << "one stays shared";
}

TEST_F(PendingFits, GiveNoCpusOfItsOwnToWhoSharesThemAndIsResized) {
  book("main", {});
  allocations_.back().workload.demand.cpu_request_milli = allocations_.back().workload.demand.cpu_limit_milli = 1500;
  EXPECT_THAT(available(pod(grown("4500m"), {})), ElementsAre(10, 10));
  EXPECT_THAT(available(pod(grown("5"), {})), ElementsAre(10, 10)) << "it has some of its own when it begins again";
  EXPECT_THAT(available(pod(grown("2500m"), {})), ElementsAre(10, 10)) << "by a whole CPU";
}

TEST_F(PendingFits, LeaveTheCpusOfWhoIsToShareThemAsLongAsItHasThem) {
  book("main", CpuSet::range(0, 3));
  EXPECT_THAT(available(pod(grown("4500m"), {})), ElementsAre(6, 10));
  EXPECT_THAT(last_.unplaced, IsEmpty());
}

TEST_F(PendingFits, CountTheMemoryOfAResizeWhereTheContainerIs) {
  is_one_only_ = true;
  book("main", CpuSet::range(0, 3));
  available(pod(grown("4", "3Gi"), {}));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 3 * kGibi);
  EXPECT_EQ(last_.nodes[1].booked_memory_bytes, 0);
  book_another(CpuSet::range(4, 8));
  EXPECT_THAT(available(pod(grown("8", "3Gi"), {})), ElementsAre(1, 10));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 3 * kGibi) << "the kubelet asks for memory alone";
  EXPECT_THAT(last_.unplaced, SizeIs(1));
}

TEST_F(PendingFits, CountAResizeOfAnInitContainerBeforeThoseThatComeAfterIt) {
  is_one_only_ = true;
  book("init", CpuSet::range(0, 1));
  EXPECT_THAT(available(pod({asking("main", "2")}, {asking("init", "6")})), ElementsAre(4, 10));
}

TEST_F(PendingFits, CountAResizeThatCreatesItAnewWhereItIsAndWhereItWillBe) {
  is_one_only_ = true;
  book("main", CpuSet::range(0, 3));
  json anew = pod(grown("8"), {});
  anew["spec"]["containers"][0]["resizePolicy"] = {{{"resourceName", "cpu"}, {"restartPolicy", "RestartContainer"}}};
  EXPECT_THAT(available(anew), ElementsAre(2, 10));
  book_another(CpuSet::range(4, 8));
  EXPECT_THAT(available(anew), ElementsAre(1, 2)) << "it goes elsewhere, and has not left yet";
  EXPECT_THAT(last_.unplaced, IsEmpty());
}

TEST_F(PendingFits, CountNothingOfAResizeOfWhoIsGone) {
  watch::v1::PendingContainer growth;
  growth.set_pod_uid("uid-p");
  growth.set_name("(growth of main)");
  growth.set_qos("guaranteed");
  growth.set_cpu_request_milli(4000);
  growth.set_cpu_limit_milli(4000);
  growth.set_grows("main");
  const auto cpus_with = [&] {
    watch::v1::FitsRequest request;
    *request.add_pending() = growth;
    return compute(*watch::pending_of(request)).nodes[0].exclusive_cpus;
  };
  EXPECT_EQ(cpus_with(), 10);
  book("main", CpuSet::range(0, 3));
  growth.set_cpu_request_milli(-4000);
  growth.set_cpu_limit_milli(-4000);
  EXPECT_EQ(cpus_with(), 6) << "nobody shrinks";
  growth.set_cpu_request_milli(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(cpus_with(), 6) << "nobody has so many";
  allocations_.clear();
  growth.set_cpu_request_milli(4000);
  growth.set_cpu_limit_milli(4000);
  growth.clear_grows();
  EXPECT_EQ(cpus_with(), 6) << "as who knows nothing else tells it";
}

class PendingFitsOnCores : public PendingFits {
 protected:
  PendingFitsOnCores() : PendingFits("node:2 core:4 pu:2") {}
};

TEST_F(PendingFitsOnCores, KeepWholeCoresWhereAnInitContainerHasMore) {
  rules_.min_shared_cpus = 0;
  book_another({0, 1});
  book("init", CpuSet::range(2, 7));
  allocations_.erase(allocations_.begin());  // it has ended, and main is placed on its CPUs
  EXPECT_THAT(available(pod({asking("main", "2")}, {asking("init", "6")})), ElementsAre(2, 8));
}

}  // namespace
}  // namespace topolet::agent
