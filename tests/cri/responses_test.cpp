#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"
#include "tests/support/cri.pb.h"

namespace topolet::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
namespace api = ::runtime::v1;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr operations::DemandRules kRules{.memory_total_bytes = 100 * kGiB};
const std::string kGarbage = "\x0f\xff\xff";

TEST(ReadAnswers, NameTheMessageThatCannotBeParsed) {
  const std::vector<std::pair<Error, std::string>> cases = {
      {read_run_pod_sandbox_response(kGarbage).error(), "RunPodSandboxResponse"},
      {read_create_container_response(kGarbage).error(), "CreateContainerResponse"},
      {read_list_containers({}, kGarbage).error(), "ListContainersResponse"},
      {read_list_pod_sandbox(kGarbage).error(), "ListPodSandboxResponse"},
      {read_container_status(kGarbage, kRules).error(), "ContainerStatusResponse"},
  };
  for (const auto& [error, name] : cases) {
    EXPECT_EQ(error.code, Code::kInternal) << name;
    EXPECT_THAT(error.message, HasSubstr(name + " cannot be parsed"));
  }
}

TEST(ReadListContainers, TellsAWholeListFromAFilteredOne) {
  const auto unfiltered = [](const api::ListContainersRequest& request) {
    return read_list_containers(request.SerializeAsString(), {})->unfiltered;
  };
  api::ListContainersRequest request;
  EXPECT_TRUE(unfiltered(request));
  request.mutable_filter();
  EXPECT_TRUE(unfiltered(request));
  request.mutable_filter()->mutable_state();
  EXPECT_FALSE(unfiltered(request)) << "an empty state filter asks for created containers";
  request.Clear();
  request.mutable_filter()->set_id("c1");
  EXPECT_FALSE(unfiltered(request));
  EXPECT_FALSE(read_list_containers(request.SerializeAsString() + std::string("\x0a\x00", 2), {})->unfiltered);
  EXPECT_FALSE(read_list_containers(std::string("\x10\x01"), {})->unfiltered) << "a filter yet to be invented";
}

TEST(ReadListContainers, KnowsEveryState) {
  api::ListContainersResponse response;
  for (int state : {0, 1, 2, 3, 77}) {
    api::Container& container = *response.add_containers();
    container.set_state(static_cast<api::ContainerState>(state));
  }
  const auto list = read_list_containers({}, response.SerializeAsString());
  std::vector<operations::ContainerState> states;
  for (const operations::ContainerInfo& info : list->containers) states.push_back(info.state);
  EXPECT_THAT(states, ElementsAre(operations::ContainerState::kCreated, operations::ContainerState::kRunning,
                                  operations::ContainerState::kExited, operations::ContainerState::kUnknown,
                                  operations::ContainerState::kUnknown));
}

TEST(ReadListContainers, KnowsThePodByTheKubeletsLabels) {
  api::ListContainersResponse response;
  api::Container& container = *response.add_containers();
  (*container.mutable_labels())["io.kubernetes.pod.uid"] = "uid-1";
  (*container.mutable_labels())["io.kubernetes.pod.name"] = "web";
  (*container.mutable_labels())["io.kubernetes.pod.namespace"] = "shop";
  response.add_containers();
  const auto list = read_list_containers({}, response.SerializeAsString());
  EXPECT_EQ(list->containers[0].pod_uid, "uid-1");
  EXPECT_EQ(list->containers[0].pod_name, "web");
  EXPECT_EQ(list->containers[0].pod_namespace, "shop");
  EXPECT_EQ(list->containers[1].pod_uid, "");
}

TEST(ReadListPodSandbox, KnowsTheAnnotationsOfAPod) {
  api::ListPodSandboxResponse response;
  (*response.add_items()->mutable_annotations())["topolet.io/cpus"] = "none";
  const auto sandboxes = read_list_pod_sandbox(response.SerializeAsString());
  EXPECT_THAT((*sandboxes)[0].annotations, ElementsAre(Pair("topolet.io/cpus", "none")));
}

TEST(ReadListPodSandbox, KnowsWhoIsStillReady) {
  api::ListPodSandboxResponse response;
  api::PodSandbox& ready = *response.add_items();
  ready.set_id("s1");
  ready.mutable_metadata()->set_uid("uid-1");
  ready.set_runtime_handler("kata");
  response.add_items()->set_state(api::SANDBOX_NOTREADY);
  const auto sandboxes = read_list_pod_sandbox(response.SerializeAsString());
  ASSERT_EQ(sandboxes->size(), 2U);
  EXPECT_EQ((*sandboxes)[0].pod_uid, "uid-1");
  EXPECT_EQ((*sandboxes)[0].runtime_handler, "kata");
  EXPECT_TRUE((*sandboxes)[0].ready);
  EXPECT_FALSE((*sandboxes)[1].ready);
}

api::ContainerStatusResponse running_status(const std::string& info) {
  api::ContainerStatusResponse response;
  api::ContainerStatus& status = *response.mutable_status();
  status.set_id("c1");
  status.mutable_metadata()->set_name("web");
  status.mutable_metadata()->set_attempt(2);
  status.set_state(api::CONTAINER_RUNNING);
  if (!info.empty()) (*response.mutable_info())["info"] = info;
  return response;
}

// As containerd 1.6 writes it, shortened.
constexpr const char* kContainerdInfo = R"({
  "sandboxID": "s1", "pid": 4711, "removing": false, "snapshotter": "overlayfs",
  "config": {
    "metadata": {"name": "web", "attempt": 2},
    "envs": [{"key": "NVIDIA_VISIBLE_DEVICES", "value": "0"}],
    "devices": [{"container_path": "/dev/fuse", "host_path": "/dev/fuse", "permissions": "rwm"}],
    "CDI_devices": [{"name": "nvidia.com/gpu=1"}],
    "annotations": {"io.kubernetes.container.restartCount": "2"},
    "linux": {"resources": {"cpu_period": 100000, "cpu_quota": 100000, "cpu_shares": 1024, "oom_score_adj": -997,
                            "memory_limit_in_bytes": 536870912, "cpuset_cpus": "0-1",
                            "hugepage_limits": [{"page_size": "2MB", "limit": 2097152}]}}
  },
  "runtimeSpec": {"linux": {
    "cgroupsPath": "kubepods-poduid_1.slice:cri-containerd:c1",
    "resources": {"memory": {"limit": 1073741824},
                  "cpu": {"shares": 2048, "quota": 200000, "period": 100000, "cpus": "2-3", "mems": "0"}}}}
})";

TEST(ReadContainerStatus, UnderstandsContainerd) {
  const auto detail = read_container_status(running_status(kContainerdInfo).SerializeAsString(), kRules);
  ASSERT_TRUE(detail.has_value()) << detail.error().message;
  EXPECT_EQ(detail->info.id, "c1");
  EXPECT_EQ(detail->info.sandbox_id, "s1");
  EXPECT_EQ(detail->info.name, "web");
  EXPECT_EQ(detail->info.attempt, 2U);
  EXPECT_EQ(detail->info.state, operations::ContainerState::kRunning);
  EXPECT_EQ(detail->pid, 4711);
  EXPECT_EQ(detail->spec_cpus, (CpuSet{2, 3}));
  EXPECT_EQ(detail->spec_mems, NodeSet{0});
  const placement::Workload& workload = detail->workload;
  EXPECT_EQ(workload.key, (placement::ContainerKey{"", "web", 2, "s1"}));
  EXPECT_EQ(workload.qos, placement::Qos::kGuaranteed);
  EXPECT_EQ(workload.demand.cpu_request_milli, 2000) << "the spec knows of a resize, the config does not";
  EXPECT_EQ(workload.demand.memory_request_bytes, kGiB);
  EXPECT_EQ(workload.demand.hugepage_limit_bytes.at("2MB"), 2097152);
  EXPECT_TRUE(workload.kubelet_cpus.empty()) << "the config's cpuset may be the one topolet appended";
  EXPECT_THAT(workload.env, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "0")));
  EXPECT_THAT(workload.devices, ElementsAre("/dev/fuse"));
  EXPECT_THAT(workload.cdi_devices, ElementsAre("nvidia.com/gpu=1"));
  EXPECT_THAT(workload.annotations, ElementsAre(Pair("io.kubernetes.container.restartCount", "2")));
}

// As CRI-O 1.36 writes it, shortened.
constexpr const char* kCrioInfo = R"({
  "sandboxID": "s1", "pid": 4711, "privileged": false,
  "runtimeSpec": {
    "process": {"oomScoreAdj": 872, "env": ["PATH=/bin", "NVIDIA_VISIBLE_DEVICES=0", "nonsense"]},
    "linux": {
      "cgroupsPath": "kubepods-burstable-poduid_1.slice:crio:c1",
      "devices": [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}],
      "resources": {"memory": {"limit": 1073741824, "swap": 1073741824},
                    "cpu": {"shares": 1536, "quota": 200000, "period": 100000, "cpus": "2-3", "mems": "0"},
                    "hugepageLimits": [{"pageSize": "2MB", "limit": 2097152}, {"pageSize": "1GB", "limit": 0}]}}}
})";

TEST(ReadContainerStatus, UnderstandsCrio) {
  api::ContainerStatusResponse response = running_status(kCrioInfo);
  (*response.mutable_status()->mutable_annotations())["io.kubernetes.container.restartCount"] = "2";
  const auto detail = read_container_status(response.SerializeAsString(), kRules);
  ASSERT_TRUE(detail.has_value()) << detail.error().message;
  EXPECT_TRUE(detail->tells_cpuset);
  EXPECT_EQ(detail->spec_cpus, (CpuSet{2, 3}));
  EXPECT_EQ(detail->pid, 4711);
  EXPECT_TRUE(operations::tells_all(detail->told));
  const placement::Workload& workload = detail->workload;
  EXPECT_EQ(workload.key, (placement::ContainerKey{"", "web", 2, "s1"}));
  EXPECT_EQ(workload.qos, placement::Qos::kBurstable);
  EXPECT_EQ(workload.demand.cpu_request_milli, 1500);
  EXPECT_EQ(workload.demand.cpu_request_certainty, placement::Certainty::kTold);
  EXPECT_EQ(workload.demand.cpu_limit_milli, 2000);
  EXPECT_EQ(workload.demand.memory_limit_bytes, kGiB);
  EXPECT_EQ(workload.demand.memory_request_bytes, kGiB) << "12.8 % of the machine, and at most the limit";
  EXPECT_TRUE(workload.demand.memory_request_estimated);
  EXPECT_EQ(workload.demand.hugepage_limit_bytes.at("2MB"), 2097152);
  EXPECT_THAT(workload.env, ElementsAre(Pair("PATH", "/bin"), Pair("NVIDIA_VISIBLE_DEVICES", "0")));
  EXPECT_THAT(workload.devices, ElementsAre("/dev/fuse"));
  EXPECT_THAT(workload.annotations, ElementsAre(Pair("io.kubernetes.container.restartCount", "2")));
}

TEST(ReadContainerStatus, TakesNoDevicesOfAPrivilegedContainerFromItsSpec) {
  const auto detail = read_container_status(
      running_status(R"({"privileged":true,"runtimeSpec":{"linux":{"devices":[{"path":"/dev/nvidia0"}]}}})")
          .SerializeAsString(),
      kRules);
  EXPECT_TRUE(detail->workload.devices.empty());
}

TEST(ReadContainerStatus, KnowsThatASpecWithoutRequestsAsksForNothing) {
  const auto detail = read_container_status(
      running_status(R"({"runtimeSpec":{"process":{"oomScoreAdj":1000},"linux":{"cgroupsPath":"/x/c1"}}})")
          .SerializeAsString(),
      kRules);
  EXPECT_EQ(detail->workload.qos, placement::Qos::kBestEffort);
  EXPECT_EQ(detail->workload.demand, placement::Demand());
}

TEST(ReadContainerStatus, LeavesUnknownWhatCriDockerdDoesNotTell) {
  const auto detail =
      read_container_status(running_status(R"({"sandboxID":"s1","pid":7})").SerializeAsString(), kRules);
  EXPECT_EQ(detail->pid, 7);
  EXPECT_EQ(detail->info.sandbox_id, "s1");
  EXPECT_FALSE(detail->tells_cpuset);
  EXPECT_EQ(detail->told, operations::ToldResources());
  EXPECT_EQ(detail->workload.key, (placement::ContainerKey{"", "web", 2, "s1"}));
  EXPECT_EQ(detail->workload.qos, placement::Qos::kUnknown);
  EXPECT_EQ(detail->workload.demand.cpu_request_certainty, placement::Certainty::kUnknown);
  EXPECT_EQ(detail->workload.demand.cpu_request_milli, 1000) << "it counts as one CPU, not as none";
}

TEST(ReadContainerStatus, TakesFromTheKernelWhatTheRuntimeDoesNotTell) {
  auto detail = *read_container_status(running_status(R"({"pid":7})").SerializeAsString(), kRules);
  complete(detail, {.qos = placement::Qos::kGuaranteed, .cpu_shares = 2048, .memory_limit_bytes = kGiB}, 2, kRules);
  EXPECT_EQ(detail.workload.qos, placement::Qos::kGuaranteed);
  EXPECT_EQ(detail.workload.demand.cpu_request_milli, 2000);
  EXPECT_EQ(detail.workload.demand.memory_request_bytes, kGiB);
  EXPECT_EQ(detail.workload.demand.cpu_request_certainty, placement::Certainty::kTold);
  auto crio = *read_container_status(running_status(kCrioInfo).SerializeAsString(), kRules);
  complete(crio, {.qos = placement::Qos::kGuaranteed, .cpu_shares = 2}, 2, kRules);
  EXPECT_EQ(crio.workload.qos, placement::Qos::kBurstable) << "the runtime has said so";
}

/// CRI-O that was restarted tells a container as it was created.
TEST(ReadContainerStatus, TakesFromTheKernelWhatAnUpdateHasChanged) {
  auto crio = *read_container_status(running_status(kCrioInfo).SerializeAsString(), kRules);
  complete(crio, {.cpu_period_us = 100000, .cpu_quota_us = -1, .cpu_shares = 717, .memory_limit_bytes = 2 * kGiB}, 2,
           kRules);
  EXPECT_EQ(crio.workload.demand.cpu_request_milli, 701);
  EXPECT_EQ(crio.workload.demand.cpu_limit_milli, 0);
  EXPECT_EQ(crio.workload.demand.memory_limit_bytes, 2 * kGiB);
  complete(crio, {.cpu_weight = 59}, 2, kRules);
  EXPECT_EQ(crio.workload.demand.cpu_request_milli, 1500) << "the weight is that of 1536 shares";
  EXPECT_EQ(crio.workload.demand.cpu_request_certainty, placement::Certainty::kTold);
  complete(crio, {.cpu_quota_us = -1, .cpu_weight = 28}, 2, kRules);
  EXPECT_EQ(crio.workload.demand.cpu_request_certainty, placement::Certainty::kEstimated);
  EXPECT_GE(crio.workload.demand.cpu_request_milli, 700);
  auto containerd = *read_container_status(running_status(kContainerdInfo).SerializeAsString(), kRules);
  complete(containerd, {.cpu_shares = 2}, 2, kRules);
  EXPECT_EQ(containerd.workload.demand.cpu_request_milli, 2000) << "containerd keeps what was changed";
}

TEST(ReadContainerStatus, FallsBackToTheReportedResources) {
  api::ContainerStatusResponse response = running_status({});
  auto& resources = *response.mutable_status()->mutable_resources()->mutable_linux();
  resources.set_cpuset_cpus("4-5");
  resources.set_cpuset_mems("1");
  auto detail = read_container_status(response.SerializeAsString(), kRules);
  EXPECT_EQ(detail->spec_cpus, (CpuSet{4, 5}));
  EXPECT_EQ(detail->spec_mems, NodeSet{1});
  (*response.mutable_info())["info"] = kContainerdInfo;
  detail = read_container_status(response.SerializeAsString(), kRules);
  EXPECT_EQ(detail->spec_cpus, (CpuSet{2, 3}));
}

TEST(ReadContainerStatus, HasNoPidOnceTheContainerHasExited) {
  api::ContainerStatusResponse response = running_status(kContainerdInfo);
  response.mutable_status()->set_state(api::CONTAINER_EXITED);
  response.mutable_status()->set_exit_code(137);
  const auto detail = read_container_status(response.SerializeAsString(), kRules);
  EXPECT_EQ(detail->pid, 0);
  EXPECT_EQ(detail->info.exit_code, 137);
}

TEST(ReadContainerStatus, TakesOnlyListsForLists) {
  const auto detail = read_container_status(
      running_status(R"({"config":{"metadata":{"name":"web"},"devices":7,"CDI_devices":"x","envs":{"a":{"key":"b"}},)"
                     R"("linux":{"resources":{"hugepage_limits":{"page_size":"2MB"}}}}})")
          .SerializeAsString(),
      kRules);
  EXPECT_TRUE(detail->workload.devices.empty());
  EXPECT_TRUE(detail->workload.cdi_devices.empty());
  EXPECT_TRUE(detail->workload.env.empty());
  EXPECT_TRUE(detail->workload.demand.hugepage_limit_bytes.empty());
}

TEST(ReadContainerStatus, ShrugsAtInfoOfAnyShape) {
  const std::string deep(100000, '[');
  const std::string wrong_within =
      R"({"config":{"metadata":{"name":7,"attempt":-1},"envs":{"a":1},"devices":[7,null,[]],"CDI_devices":"x",)"
      R"("annotations":{"a":1},"linux":{"resources":{"cpu_shares":18446744073709551615,"hugepage_limits":[{}]}}},)"
      R"("runtimeSpec":{"linux":{"cgroupsPath":3,"resources":{"cpu":{"cpus":"a-b","mems":9,"quota":1e99}}}}})";
  const std::vector<std::string> infos = {"",
                                          "null",
                                          "7",
                                          "{",
                                          "[]",
                                          "{}",
                                          deep,
                                          "\xff",
                                          R"({"pid":"x","config":7,"runtimeSpec":[]})",
                                          R"({"pid":1e300,"config":{"metadata":[],"linux":null}})",
                                          wrong_within};
  for (const std::string& info : infos) {
    lens::ContainerStatusResponse response;  // the full one would not carry text that is not UTF-8
    response.mutable_status()->mutable_metadata()->set_name("web");
    response.mutable_status()->set_state(api::CONTAINER_RUNNING);
    lens::Entry& entry = *response.add_info();
    entry.set_key("info");
    entry.set_value(info);
    const auto detail = read_container_status(response.SerializeAsString(), kRules);
    ASSERT_TRUE(detail.has_value()) << info.substr(0, 80);
    EXPECT_EQ(detail->info.name, "web");
    EXPECT_EQ(detail->pid, 0);
    EXPECT_TRUE(detail->spec_cpus.empty());
  }
}

}  // namespace
}  // namespace topolet::cri
