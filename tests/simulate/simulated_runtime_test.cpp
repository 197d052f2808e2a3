#include "core/simulate/simulated_runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cri/messages/requests.hpp"
#include "core/simulate/kubelet.hpp"

namespace topolet::simulate {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr operations::DemandRules kRules{.memory_total_bytes = std::int64_t{1} << 30};

Operation operation(const std::string& line) {
  const auto parsed = parse_operation(line);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return *parsed;
}

class RuntimeTest : public testing::Test {
 protected:
  std::string id_of(const cri::RuntimeResponse& answer) {
    EXPECT_EQ(answer.code, Code::kOk) << answer.message;
    return *cri::read_create_container_response(answer.body);
  }
  std::string run_pod(const std::string& line) {
    pod_.spec = operation(line);
    const std::string request = run_pod_request(pod_.spec, kRules.memory_total_bytes);
    pod_.sandbox_id = id_of(runtime_.answer("RunPodSandbox", request, Caller::kKubelet));
    return pod_.sandbox_id;
  }
  /// As the daemon forwards it.
  std::string create(const std::string& line, const CpuSet& cpus, const NodeSet& mems) {
    request_ = create_request(operation(line), pod_, 0, kRules.memory_total_bytes);
    const std::string sent = request_ + cri::patch_create_container({cpus, mems});
    return id_of(runtime_.answer("CreateContainer", sent, Caller::kKubelet));
  }
  operations::ContainerDetail detail(const std::string& id) {
    const cri::RuntimeResponse answer =
        runtime_.answer("ContainerStatus", cri::make_container_status(id), Caller::kDaemon);
    return *cri::read_container_status(answer.body, kRules);
  }
  void start(const std::string& id) { runtime_.answer("StartContainer", id_request(id), Caller::kKubelet); }

  SimulatedRuntime runtime_;
  SimulatedPod pod_;
  std::string request_;
};

constexpr const char* kBurstable = R"({"op":"run_pod","pod":"p","qos":"burstable"})";
constexpr const char* kMain = R"({"op":"create","pod":"p","container":"main","cpu_request_milli":1500,
    "cpu_limit_milli":2000,"memory_request":536870912,"memory_limit":805306368,"hugepages":{"2Mi":4194304},
    "devices":["/dev/a"],"env":{"A":"b"},"annotations":{"k":"v"}})";

TEST_F(RuntimeTest, TellsOfAContainerWhatItsCreateSaid) {
  run_pod(kBurstable);
  const operations::ContainerDetail found = detail(create(kMain, {2, 3}, {1}));
  const placement::Workload asked = *cri::read_create_container(request_, kRules);
  EXPECT_EQ(found.spec_cpus, (CpuSet{2, 3}));
  EXPECT_EQ(found.spec_mems, NodeSet{1});
  EXPECT_EQ(found.workload.qos, placement::Qos::kBurstable);
  EXPECT_EQ(found.workload.demand, asked.demand);
  EXPECT_EQ(found.workload.devices, asked.devices);
  EXPECT_EQ(found.workload.env, asked.env);
  EXPECT_EQ(found.workload.annotations, asked.annotations);
  EXPECT_EQ(found.workload.key.sandbox_id, pod_.sandbox_id);
}

TEST_F(RuntimeTest, RunsAContainerWhereTheLastUpdateSaid) {
  run_pod(kBurstable);
  const std::string id = create(kMain, {2, 3}, {});
  EXPECT_THAT(runtime_.running(), IsEmpty());
  start(id);
  ASSERT_THAT(runtime_.running(), SizeIs(1));
  EXPECT_EQ(runtime_.running()[0].pod, "p");
  EXPECT_EQ(runtime_.running()[0].cpus, (CpuSet{2, 3}));
  const std::string update = cri::make_update_container_resources(id, {CpuSet{5}, NodeSet{0}});
  EXPECT_EQ(runtime_.answer("UpdateContainerResources", update, Caller::kDaemon).code, Code::kOk);
  EXPECT_EQ(runtime_.running()[0].cpus, CpuSet{5});
  EXPECT_EQ(detail(id).spec_mems, NodeSet{0});
  const Operation resize = operation(R"({"op":"update","pod":"p","container":"main","cpu_limit_milli":3000})");
  runtime_.answer("UpdateContainerResources", update_request(resize, id, placement::Qos::kGuaranteed, 0),
                  Caller::kKubelet);
  EXPECT_EQ(detail(id).workload.demand.cpu_limit_milli, 3000);
  EXPECT_EQ(detail(id).workload.demand.cpu_request_milli, 1500);
  EXPECT_EQ(runtime_.running()[0].cpus, CpuSet{5});
}

TEST_F(RuntimeTest, GivesTheSameIdsToTheSameCallsAndLeavesTheContainerAsItWasMade) {
  const std::string sandbox = run_pod(kBurstable);
  EXPECT_EQ(run_pod(kBurstable), sandbox);
  const std::string id = create(kMain, {2, 3}, {});
  EXPECT_EQ(create(kMain, {4}, {}), id);
  EXPECT_EQ(detail(id).spec_cpus, (CpuSet{2, 3}));
}

TEST_F(RuntimeTest, RefusesOneUpdateOfTheDaemonsOwnAndNoneOfTheKubelets) {
  run_pod(kBurstable);
  const std::string id = create(kMain, {2, 3}, {});
  runtime_.set_next_own_update(NextResponse::kRefuse);
  const std::string update = cri::make_update_container_resources(id, {CpuSet{5}, {}});
  EXPECT_EQ(runtime_.answer("UpdateContainerResources", update, Caller::kKubelet).code, Code::kOk);
  EXPECT_EQ(runtime_.answer("UpdateContainerResources", update, Caller::kDaemon).code, Code::kUnknown);
  EXPECT_EQ(runtime_.answer("UpdateContainerResources", update, Caller::kDaemon).code, Code::kOk);
}

}  // namespace
}  // namespace topolet::simulate
