// Creates of a front that tells neighbours with its answer: from then on the runtime starts the container without
// asking, should topoletd be gone.
#include <gmock/gmock.h>

#include "core/engine/converge/cpuset_files.hpp"
#include "core/engine/handlers/create_container.hpp"
#include "tests/engine/awaited_operation.hpp"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::IsEmpty;

class AnsweredCreate final : public AwaitedOperation<operations::CreateOperation> {
 public:
  explicit AnsweredCreate(placement::Workload workload) : workload_(std::move(workload)) {}

  const placement::Workload& workload() const override { return workload_; }
  std::string container_id() const override { return "c-" + workload_.key.name; }
  operations::Neighbours neighbours() const override { return operations::Neighbours::kInAnswer; }
  void admit(const operations::Admission& told, operations::OnOutcome on_outcome) override {
    admission = told;
    outcome = std::move(on_outcome);
  }

  CpuSet cpus() const { return admission && admission->set ? admission->set->cpus : CpuSet(); }

  std::optional<operations::Admission> admission;

 private:
  const placement::Workload workload_;
};

class CreateInAnswerTest : public HandlerTest {
 protected:
  static constexpr std::int64_t kNeighbour = 1088;

  ~CreateInAnswerTest() override {
    // Who waits for an outcome keeps its operation.
    for (const auto& operation : made_) operation->outcome = nullptr;
  }

  /// `web` shares all CPUs, and has a process unless it is still to be started.
  void begin_beside_web(operations::ContainerState state = operations::ContainerState::kRunning) {
    const bool runs = state == operations::ContainerState::kRunning;
    begin({shared("web", runs ? Phase::kRunning : Phase::kCreated)}, {pod_of("web"), pod_of("a"), pod_of("b")});
    ScriptedRuntime::Container container = container_of("web", state);
    if (runs) container.pid = kNeighbour;
    runtime_.put("c-web", container);
    mover_->open_queue("c-web", desired_cpuset_of(*find("web")));
    mover_->verify("c-web");
    loop_.run();
    if (runs) kernel_.run_settable(kNeighbour, "/kubepods/c-web", CpuSet::range(0, 7));
  }
  std::shared_ptr<AnsweredCreate> create(placement::Workload workload) {
    made_.push_back(std::make_shared<AnsweredCreate>(std::move(workload)));
    CreateContainer::handle(deps(), made_.back());
    loop_.run();
    return made_.back();
  }
  /// The runtime has created it.
  void finish(const std::shared_ptr<AnsweredCreate>& operation) {
    runtime_.put(operation->container_id(), {.state = operations::ContainerState::kCreated, .cpus = operation->cpus()});
    operation->outcome({.kind = operations::Outcome::Kind::kDone, .id = operation->container_id()});
    loop_.run();
  }
  CpuSet cpus_of_web() { return read_cpus(kernel_.directory_of(kNeighbour)).value_or(CpuSet()); }

 private:
  std::vector<std::shared_ptr<AnsweredCreate>> made_;
};

TEST_F(CreateInAnswerTest, HasItsCpusAloneBeforeItIsAnswered) {
  begin_beside_web();
  const auto created = create(guaranteed("a", 1));
  ASSERT_TRUE(created->admission) << created->rejected;
  const CpuSet alone = find("a")->placement.cpus;
  EXPECT_EQ(created->cpus(), alone);
  EXPECT_EQ(cpus_of_web(), CpuSet::range(0, 7) - alone);
  ASSERT_EQ(created->admission->neighbours.size(), 1U) << "the runtime's record is to agree";
  EXPECT_EQ(created->admission->neighbours[0].set.cpus, CpuSet::range(0, 7) - alone);
}

TEST_F(CreateInAnswerTest, IsCreatedAsOneThatSharesBesideAnUpdateThatCannotBeChangedAnyMore) {
  begin_beside_web();
  mover_->renew("c-web", {CpuSet::range(0, 7), {}});
  const auto created = create(guaranteed("a", 1));
  ASSERT_TRUE(created->admission) << created->rejected;
  EXPECT_EQ(find("a")->placement.cpus.size(), 1U);
  EXPECT_EQ(created->cpus(), CpuSet::range(0, 7));
}

/// The kernel shows that it has been carried out.
TEST_F(CreateInAnswerTest, HasItsCpusAloneBesideAnUpdateThatIsOver) {
  begin_beside_web();
  kernel_.run_settable(kNeighbour, "/kubepods/c-web", CpuSet{0});
  mover_->renew("c-web", {CpuSet::range(0, 7), {}});
  kernel_.run_settable(kNeighbour, "/kubepods/c-web", CpuSet::range(0, 7));
  const auto created = create(guaranteed("a", 1));
  EXPECT_EQ(created->cpus(), find("a")->placement.cpus);
}

TEST_F(CreateInAnswerTest, IsCreatedAsOneThatSharesBesideOneThatMayBeStarting) {
  begin_beside_web(operations::ContainerState::kCreated);
  const auto created = create(guaranteed("a", 1));
  ASSERT_TRUE(created->admission) << created->rejected;
  EXPECT_EQ(created->cpus(), CpuSet::range(0, 7));
  finish(created);
  EXPECT_EQ(runtime_.container("c-a").cpus(), find("a")->placement.cpus) << "once the other one has been told to leave";
  EXPECT_THAT(find("a")->vacating.to_string(), IsEmpty());
}

TEST_F(CreateInAnswerTest, IsCreatedAsOneThatSharesBesideOneThatIsBeingCreated) {
  begin({}, {pod_of("a"), pod_of("b")});
  const auto shares = create(besteffort("b"));
  ASSERT_EQ(shares->cpus(), CpuSet::range(0, 7));
  const auto created = create(guaranteed("a", 1));
  ASSERT_TRUE(created->admission) << created->rejected;
  EXPECT_EQ(created->cpus(), CpuSet::range(0, 7));
}

TEST_F(CreateInAnswerTest, HasItsCpusAloneWhereNobodyIs) {
  begin({}, {pod_of("a")});
  const auto created = create(guaranteed("a", 1));
  ASSERT_TRUE(created->admission) << created->rejected;
  EXPECT_EQ(created->cpus(), find("a")->placement.cpus);
  EXPECT_EQ(created->cpus().size(), 1U);
}

/// Another plugin of the runtime has set them, and the create fails because topolet does so too.
TEST_F(CreateInAnswerTest, TakesCpusForTheKubeletsOnlyOnceTheContainerIsThere) {
  begin({}, {pod_of("a")});
  placement::Workload workload = guaranteed("a", 1);
  workload.kubelet_cpus = CpuSet{3};
  workload.made_by_kubelet = true;
  const auto says_static = [this] {
    for (const std::string& transition : take_transitions()) {
      if (transition.find("kubelet-static") != std::string::npos) return true;
    }
    return false;
  };
  const auto refused = create(workload);
  ASSERT_TRUE(refused->outcome) << refused->rejected;
  refused->outcome({.kind = operations::Outcome::Kind::kRefused, .code = Code::kInternal, .message = "both set CPUs"});
  loop_.run();
  EXPECT_FALSE(says_static());
  const auto created = create(workload);
  ASSERT_TRUE(created->outcome) << created->rejected;
  finish(created);
  EXPECT_TRUE(says_static());
}

}  // namespace
}  // namespace topolet::engine
