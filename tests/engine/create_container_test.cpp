#include "core/engine/handlers/create_container.hpp"

#include <gmock/gmock.h>

#include "core/cri/messages/lens.pb.h"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

class CreateContainerTest : public HandlerTest {
 public:
  void on_durable(const Transition& transition) override {
    for (const Change& change : transition.changes) {
      if (change.outcome) outcomes_.push_back(change.outcome->message);
    }
    HandlerTest::on_durable(transition);
  }

 protected:
  /// Creates a container in the pod of the same name; `whole_cpus`: Guaranteed, 0 = BestEffort.
  std::shared_ptr<ScriptedCall> create(const std::string& name, std::int64_t whole_cpus = 0) {
    const Pod pod = pod_of(name);
    lens::CreateContainerRequest request;
    request.set_sandbox_id(pod.sandbox.id);
    request.mutable_config()->mutable_metadata()->set_name(name);
    lens::PodMetadata& metadata = *request.mutable_sandbox_config()->mutable_metadata();
    metadata.set_name(name);
    metadata.set_uid(pod.sandbox.pod_uid);
    metadata.set_pod_namespace(pod.sandbox.pod_namespace);
    lens::Entry& variable = *request.mutable_config()->add_envs();
    variable.set_key("PASSWORD");
    variable.set_value("hunter2");
    lens::Resources& resources = *request.mutable_config()->mutable_linux()->mutable_resources();
    if (whole_cpus > 0) {
      resources.set_cpu_shares(1024 * whole_cpus);
      resources.set_cpu_quota_us(100'000 * whole_cpus);
      resources.set_cpu_period_us(100'000);
      resources.set_memory_limit_bytes(1 << 20);
      resources.set_oom_score_adj(-997);
      request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/pod" + pod.sandbox.pod_uid);
    } else {
      resources.set_cpu_shares(2);
      resources.set_oom_score_adj(1000);
    }
    return call<CreateContainer>("CreateContainer", request.SerializeAsString(),
                                 [this](const auto& made) { return cri::read_create(made, {}, *log_); });
  }
  /// The runtime has made it as it was asked to, on those CPUs.
  static cri::RuntimeResponse made(const std::string& name) {
    lens::Target target;
    target.set_id("c-" + name);
    return {Code::kOk, "", target.SerializeAsString()};
  }
  void put(const std::string& name, const CpuSet& cpus) {
    runtime_.put("c-" + name, {.sandbox_id = pod_of(name).sandbox.id,
                               .name = name,
                               .state = operations::ContainerState::kCreated,
                               .cpus = cpus});
  }

  /// Others are asked about by this policy, too.
  void decide_with(std::shared_ptr<placement::Policy> policy) {
    placer_ = Placer({topology_,
                      placement::make_candidates(*topology_, topology_->allowed),
                      {},
                      [policy = std::move(policy)](const auto& request, const placement::PlacementRules& rules) {
                        return decide(*request, rules, {{.policy = policy}});
                      }});
  }

  std::vector<std::string> outcomes_;  ///< what the runtime said of creates, as it is stored
};

TEST_F(CreateContainerTest, AnswersAtOnceWhatTheRuntimeHasMade) {
  begin({}, {pod_of("a")});
  const auto call = create("a");
  ASSERT_TRUE(call->is_forwarded());
  put("a", CpuSet::range(0, 7));
  call->answer(made("a"));
  ASSERT_TRUE(call->kubelet_answer()) << "before the loop has looked at it";
  EXPECT_EQ(call->kubelet_answer()->code, Code::kOk);
  EXPECT_EQ(find("a")->phase, Phase::kPending);
  loop_.run();
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
}

TEST_F(CreateContainerTest, KeepsValuesOfVariablesOutOfWhatTheRuntimeSays) {
  begin({}, {pod_of("a")});
  const auto call = create("a");
  ASSERT_TRUE(call->is_forwarded());
  const std::string message = "device error: hunter2: unknown device";
  call->answer({Code::kUnknown, message, {}});
  loop_.run();
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->message, message) << "the kubelet is told all";
  EXPECT_THAT(outcomes_, ::testing::ElementsAre("device error: (value of PASSWORD): unknown device"));
}

/// Wants all containers in one RDT class, where there is such a class.
class Classing : public placement::Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    return std::vector<placement::Verdict>(request.candidates.size());
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& /*usable*/, std::size_t /*count*/) override {
    return placement::Pick();
  }
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& /*chosen*/) override {
    placement::Adjustment adjustment;
    if (!request.rdt_classes.empty()) adjustment.added.rdt_class = request.rdt_classes.front();
    return adjustment;
  }

 private:
  std::string name_ = "classing";
};

TEST_F(CreateContainerTest, OffersNoRdtClassThatTheRuntimeHasRefused) {
  begin({}, {pod_of("a"), pod_of("b")});
  placer_ =
      Placer({.topology = topology_,
              .candidates = placement::make_candidates(*topology_, topology_->allowed),
              .rules = {},
              .decide =
                  [policy = std::make_shared<Classing>()](const auto& request, const placement::PlacementRules& rules) {
                    return decide(*request, rules, {{.policy = policy}});
                  },
              .rdt_classes = std::make_shared<RdtClasses>([] { return std::vector<std::string>{"gold"}; })});
  const auto refused = create("a");
  EXPECT_EQ(find("a")->placement.added.rdt_class, "gold");
  refused->answer({Code::kUnknown, "failed to generate spec: failed to set RDT class: RDT support is not enabled", {}});
  loop_.run();
  const auto next = create("b");
  EXPECT_TRUE(next->is_forwarded());
  EXPECT_EQ(find("b")->placement.added.rdt_class, "");
}

/// Wants all containers to be nice, where they can be.
class Nice : public Classing {
 public:
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& /*chosen*/) override {
    placement::Adjustment adjustment;
    if (request.settable.scheduler) adjustment.added.scheduler = {placement::SchedulerClass::kOther, 3};
    return adjustment;
  }
};

TEST_F(CreateContainerTest, ShowsWhatCanBeSetAtEachCreate) {
  begin({}, {pod_of("a"), pod_of("b")});
  placement::Settable now{.through = "NRI 0.9"};
  placer_ =
      Placer({.topology = topology_,
              .candidates = placement::make_candidates(*topology_, topology_->allowed),
              .rules = {},
              .decide =
                  [policy = std::make_shared<Nice>()](const auto& request, const placement::PlacementRules& rules) {
                    return decide(*request, rules, {{.policy = policy}});
                  },
              .settable = [&now] { return now; }});
  create("a");
  EXPECT_FALSE(find("a")->placement.added.scheduler);
  now = placement::all_settable("NRI 0.12, after the runtime was replaced");
  create("b");
  EXPECT_EQ(find("b")->placement.added.scheduler, (placement::Scheduler{placement::SchedulerClass::kOther, 3}));
}

/// Has all share one CPU for each container that there is.
class GrowingPool : public placement::Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    return std::vector<placement::Verdict>(request.candidates.size());
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& request, std::size_t /*candidate*/, const CpuSet& usable,
                               std::size_t /*count*/) override {
    if (request.workload.key.name == "a") occasions_.push_back(request.occasion);
    placement::Pick pick;
    pick.narrow.emplace();
    for (const std::uint32_t cpu : usable) {
      if (pick.narrow->size() <= request.ledger.entries.size()) pick.narrow->insert(cpu);
    }
    return pick;
  }
  Result<placement::Pick> review_pick(const placement::PolicyRequest& request, std::size_t /*candidate*/,
                                      const CpuSet& /*usable*/, const CpuSet& /*chosen*/) override {
    placement::Pick pick;
    for (const placement::LedgerEntry& entry : request.ledger.entries)
      pick.replace.push_back({entry.key, may_leave_nodes_, "the pool grows"});
    return pick;
  }

  bool may_leave_nodes_ = false;                ///< others may go to other nodes
  std::vector<placement::Occasion> occasions_;  ///< when it was asked about "a"

 private:
  std::string name_ = "growing";
};

TEST_F(CreateContainerTest, PlacesOthersAnewInTheSameCommitIfAPolicyWishes) {
  begin({shared("a", Phase::kRunning, {0}), exclusive("c", {7})}, {pod_of("b")});
  start_converged("a");
  start_converged("c");
  const auto pool = std::make_shared<GrowingPool>();
  decide_with(pool);
  const auto call = create("b");
  EXPECT_TRUE(call->is_forwarded());
  EXPECT_EQ(find("b")->placement.cpus, (CpuSet{0, 1, 2}));
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{0, 1, 2}));
  EXPECT_EQ(find("a")->generation, find("b")->generation) << "in one commit";
  EXPECT_EQ(find("c")->placement.cpus, CpuSet{7}) << "it has its CPUs alone";
  EXPECT_EQ(runtime_.container("c-a").cpus(), (CpuSet{0, 1, 2})) << "it is told before the create is answered";
  EXPECT_THAT(take_transitions(), ::testing::Contains(::testing::StartsWith("a: cpus 0>0-2, within 0>0-2")));
  EXPECT_EQ(find("a")->preferred, std::nullopt) << "it does not go back";
  EXPECT_THAT(pool->occasions_, ::testing::Each(placement::Occasion::kMove));
  EXPECT_FALSE(pool->occasions_.empty());
}

TEST_F(CreateContainerTest, LeavesWhoIsPlacedAnewOnItsNodesUnlessItMayLeave) {
  begin({shared("a", Phase::kRunning, {5})}, {pod_of("b")});
  start_converged("a");
  const auto pool = std::make_shared<GrowingPool>();
  decide_with(pool);
  create("b");
  EXPECT_EQ(find("b")->placement.cpus, (CpuSet{0, 1}));
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{4, 5}));
}

TEST_F(CreateContainerTest, TakesWhoMayLeaveItsNodesAlongToOthers) {
  begin({shared("a", Phase::kRunning, {5})}, {pod_of("b")});
  start_converged("a");
  const auto pool = std::make_shared<GrowingPool>();
  pool->may_leave_nodes_ = true;
  decide_with(pool);
  create("b");
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{0, 1}));
}

TEST_F(CreateContainerTest, AnswersOnceItHasTheSetThatItGotMeanwhile) {
  begin({}, {pod_of("a"), pod_of("b")});
  const auto call = create("a");
  create("b", 2);
  ASSERT_EQ(find("a")->placement.cpus.size(), 6U) << "it was sent with 8";
  put("a", CpuSet::range(0, 7));
  call->answer(made("a"));
  EXPECT_FALSE(call->kubelet_answer());
  loop_.run();
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(runtime_.container("c-a").cpus(), find("a")->placement.cpus);
}

TEST_F(CreateContainerTest, AnswersAtOnceThoughOthersChangedMeanwhile) {
  begin({shared("c")}, {pod_of("a")});
  start_converged("c");
  const auto call = create("a");
  commit(event::Exited{find("c")->workload.key, 0});
  put("a", CpuSet::range(0, 7));
  call->answer(made("a"));
  EXPECT_TRUE(call->kubelet_answer());
}

TEST_F(CreateContainerTest, AnswersARetryOnceItHasLookedForTheFirst) {
  begin({}, {pod_of("a")});
  create("a")->answer({Code::kUnavailable, "the connection was lost", ""});
  loop_.run();
  ASSERT_EQ(find("a")->phase, Phase::kInDoubt);
  const auto retry = create("a");
  ASSERT_TRUE(retry->is_forwarded());
  put("a", {0});
  retry->answer(made("a"));
  EXPECT_FALSE(retry->kubelet_answer()) << "the first may have made it, elsewhere";
  loop_.run();
  ASSERT_TRUE(retry->kubelet_answer());
  EXPECT_EQ(runtime_.container("c-a").cpus(), CpuSet::range(0, 7));
}

TEST_F(CreateContainerTest, GivesUpOnAnAnswerThatNeverComes) {
  begin({}, {pod_of("a")});
  const auto call = create("a");
  ASSERT_TRUE(call->is_forwarded());
  loop_.advance(kOutcomePatience - std::chrono::seconds(1));
  expire_outcomes();
  EXPECT_EQ(find("a")->phase, Phase::kPending);
  EXPECT_FALSE(call->kubelet_answer());
  loop_.advance(std::chrono::seconds(1));
  expire_outcomes();
  EXPECT_EQ(find("a")->phase, Phase::kInDoubt) << "the runtime may have made it";
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kDeadlineExceeded);
  put("a", CpuSet::range(0, 7));
  call->answer(made("a"));
  loop_.run();
  EXPECT_EQ(call->kubelet_answer()->code, Code::kDeadlineExceeded) << "it is answered once";
  EXPECT_EQ(find("a")->phase, Phase::kInDoubt);
}

}  // namespace
}  // namespace topolet::engine
