#include "core/cri/messages/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

api::CreateContainerRequest minimal_create() {
  api::CreateContainerRequest request;
  request.set_pod_sandbox_id("s1");
  request.mutable_config()->mutable_metadata()->set_name("web");
  request.mutable_sandbox_config()->mutable_metadata()->set_uid("uid-1");
  return request;
}

api::CreateContainerRequest guaranteed_create() {
  api::CreateContainerRequest request = minimal_create();
  api::PodSandboxConfig& pod = *request.mutable_sandbox_config();
  pod.mutable_metadata()->set_name("web-0");
  pod.mutable_metadata()->set_namespace_("shop");
  pod.mutable_linux()->set_cgroup_parent("/kubepods/poduid-1");
  (*pod.mutable_labels())["app"] = "web";
  (*pod.mutable_annotations())["topolet.io/cpus"] = "none";
  api::ContainerConfig& config = *request.mutable_config();
  config.mutable_metadata()->set_attempt(2);
  config.add_devices()->set_host_path("/dev/nvidia0");
  config.add_cdi_devices()->set_name("nvidia.com/gpu=1");
  api::KeyValue& env = *config.add_envs();
  env.set_key("SECRET");
  env.set_value("\xff\xfe");
  (*config.mutable_annotations())["a"] = "b";
  api::LinuxContainerResources& resources = *config.mutable_linux()->mutable_resources();
  resources.set_cpu_shares(2048);
  resources.set_cpu_quota(200000);
  resources.set_cpu_period(100000);
  resources.set_memory_limit_in_bytes(kGiB);
  resources.set_oom_score_adj(-997);
  resources.set_cpuset_cpus("4-5");
  resources.set_cpuset_mems("1");
  api::HugepageLimit& pages = *resources.add_hugepage_limits();
  pages.set_page_size("2MB");
  pages.set_limit(UINT64_MAX);
  return request;
}

TEST(ReadCreateContainer, FindsEverythingAPlacementNeeds) {
  const auto workload = read_create_container(guaranteed_create().SerializeAsString(), kRules);
  ASSERT_TRUE(workload.has_value()) << workload.error().message;
  EXPECT_EQ(workload->key, (placement::ContainerKey{"uid-1", "web", 2, "s1"}));
  EXPECT_EQ(workload->pod_name, "web-0");
  EXPECT_EQ(workload->pod_namespace, "shop");
  EXPECT_EQ(workload->qos, placement::Qos::kGuaranteed);
  EXPECT_EQ(workload->demand.cpu_request_milli, 2000);
  EXPECT_EQ(workload->demand.cpu_limit_milli, 2000);
  EXPECT_EQ(workload->demand.memory_request_bytes, kGiB);
  EXPECT_EQ(workload->demand.hugepage_limit_bytes.at("2MB"), INT64_MAX);
  EXPECT_EQ(workload->kubelet_cpus, (CpuSet{4, 5}));
  EXPECT_EQ(workload->kubelet_mems, (NodeSet{1}));
  EXPECT_THAT(workload->devices, ElementsAre("/dev/nvidia0"));
  EXPECT_THAT(workload->cdi_devices, ElementsAre("nvidia.com/gpu=1"));
  EXPECT_THAT(workload->env, ElementsAre(Pair("SECRET", "\xff\xfe")));
  EXPECT_THAT(workload->pod_labels, ElementsAre(Pair("app", "web")));
  EXPECT_THAT(workload->pod_annotations, ElementsAre(Pair("topolet.io/cpus", "none")));
  EXPECT_THAT(workload->annotations, ElementsAre(Pair("a", "b")));
}

TEST(ReadCreateContainer, FindsWhatTheWholePodAsksFor) {
  api::CreateContainerRequest request = guaranteed_create();
  EXPECT_FALSE(read_create_container(request.SerializeAsString(), kRules)->pod_demand.has_value());
  api::LinuxContainerResources& pod = *request.mutable_sandbox_config()->mutable_linux()->mutable_resources();
  pod.set_cpu_shares(4096);
  pod.set_memory_limit_in_bytes(3 * kGiB);
  const auto workload = read_create_container(request.SerializeAsString(), kRules);
  ASSERT_TRUE(workload->pod_demand.has_value());
  EXPECT_EQ(workload->pod_demand->cpu_request_milli, 4000);
  EXPECT_EQ(workload->pod_demand->memory_request_bytes, 3 * kGiB);
}

TEST(ReadCreateContainer, TakesAContainerThatAsksForNothingAsBestEffort) {
  const auto workload = read_create_container(minimal_create().SerializeAsString(), kRules);
  ASSERT_TRUE(workload.has_value()) << workload.error().message;
  EXPECT_EQ(workload->qos, placement::Qos::kBestEffort);
  EXPECT_EQ(workload->demand, placement::Demand{});
  EXPECT_TRUE(workload->kubelet_cpus.empty());
}

TEST(ReadCreateContainer, BelievesTheCgroupBeforeTheOomScore) {
  api::CreateContainerRequest request = guaranteed_create();
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/burstable/poduid-1");
  EXPECT_EQ(read_create_container(request.SerializeAsString(), kRules)->qos, placement::Qos::kBurstable);
  request = minimal_create();
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/kubepods/burstable/poduid-1");
  EXPECT_EQ(read_create_container(request.SerializeAsString(), kRules)->qos, placement::Qos::kBurstable);
}

TEST(ReadCreateContainer, IsNeverGuaranteedByDefault) {
  api::CreateContainerRequest request = guaranteed_create();
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent("/k8s.io");
  EXPECT_EQ(read_create_container(request.SerializeAsString(), kRules)->qos, placement::Qos::kGuaranteed);
  request.mutable_config()->mutable_linux()->mutable_resources()->clear_oom_score_adj();
  EXPECT_EQ(read_create_container(request.SerializeAsString(), kRules)->qos, placement::Qos::kBurstable);
}

TEST(ReadCreateContainer, EstimatesTheMemoryOfABurstableContainer) {
  api::CreateContainerRequest request = minimal_create();
  request.mutable_config()->mutable_linux()->mutable_resources()->set_oom_score_adj(900);
  const auto workload = read_create_container(request.SerializeAsString(), kRules);
  EXPECT_EQ(workload->qos, placement::Qos::kBurstable);
  EXPECT_EQ(workload->demand.memory_request_bytes, 10 * kGiB);
  EXPECT_TRUE(workload->demand.memory_request_estimated);
}

TEST(ReadCreateContainer, LetsTheLastOfRepeatedKeysAndFieldsWin) {
  api::CreateContainerRequest later;
  (*later.mutable_sandbox_config()->mutable_annotations())["topolet.io/cpus"] = "exclusive";
  later.mutable_config()->mutable_metadata()->set_attempt(7);
  const std::string twice = guaranteed_create().SerializeAsString() + later.SerializeAsString();
  const auto workload = read_create_container(twice, kRules);
  EXPECT_EQ(workload->pod_annotations.at("topolet.io/cpus"), "exclusive");
  EXPECT_EQ(workload->key, (placement::ContainerKey{"uid-1", "web", 7, "s1"})) << "submessages merge";
}

TEST(ReadCreateContainer, RefusesWhatItCannotPlaceAndNamesIt) {
  const auto error_of = [](const api::CreateContainerRequest& request) {
    const auto read = read_create_container(request.SerializeAsString(), kRules);
    EXPECT_FALSE(read.has_value());
    return read.has_value() ? Error{} : read.error();
  };
  api::CreateContainerRequest request = minimal_create();
  request.clear_config();
  EXPECT_THAT(error_of(request).message, HasSubstr("config.metadata.name is empty"));
  for (const char* list : {"a-b", "3-1", "0-65536", "1,,2", "4294967296", "-1"}) {
    request = minimal_create();
    request.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus(list);
    const Error error = error_of(request);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << list;
    EXPECT_THAT(error.message, HasSubstr("CreateContainerRequest: config.linux.resources.cpuset_cpus: "));
    EXPECT_THAT(error.message, HasSubstr(list));
  }
  request = minimal_create();
  request.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_mems("x");
  EXPECT_THAT(error_of(request).message, HasSubstr("cpuset_mems: cannot read 'x'"));
}

TEST(ReadCreateContainer, KeepsItsErrorsShortAndPrintable) {
  api::CreateContainerRequest request = minimal_create();
  auto& resources = *request.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpuset_cpus(std::string(5000, '\n') + std::string(5000, 'x'));
  const Error error = read_create_container(request.SerializeAsString(), kRules).error();
  EXPECT_LT(error.message.size(), 400U);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  std::string endless = "0";
  while (endless.size() < 100000) endless += ",0-65535";
  resources.set_cpuset_cpus(endless);
  EXPECT_THAT(read_create_container(request.SerializeAsString(), kRules).error().message, HasSubstr("longer than"));
}

TEST(ReadRequests, NameTheMessageThatCannotBeParsed) {
  const std::vector<std::pair<Error, std::string>> cases = {
      {read_run_pod_sandbox(kGarbage).error(), "RunPodSandboxRequest"},
      {read_create_container(kGarbage, kRules).error(), "CreateContainerRequest"},
      {read_update_container_resources(kGarbage).error(), "UpdateContainerResourcesRequest"},
      {read_target_id(kGarbage).error(), "the request that names a container or sandbox"},
      {read_list_containers(kGarbage, {}).error(), "ListContainersRequest"},
  };
  for (const auto& [error, name] : cases) {
    EXPECT_EQ(error.code, Code::kInvalidArgument) << name;
    EXPECT_THAT(error.message, HasSubstr(name + " cannot be parsed"));
  }
}

TEST(ReadRunPodSandbox, KnowsThePod) {
  api::RunPodSandboxRequest request;
  request.mutable_config()->mutable_metadata()->set_uid("uid-1");
  request.mutable_config()->mutable_metadata()->set_name("web-0");
  request.mutable_config()->mutable_metadata()->set_namespace_("shop");
  request.set_runtime_handler("kata");
  (*request.mutable_config()->mutable_annotations())["topolet.io/cpus"] = "none";
  const operations::Sandbox expected{.id = {},
                                     .pod_uid = "uid-1",
                                     .pod_namespace = "shop",
                                     .pod_name = "web-0",
                                     .runtime_handler = "kata",
                                     .ready = true,
                                     .annotations = {{"topolet.io/cpus", "none"}}};
  EXPECT_EQ(*read_run_pod_sandbox(request.SerializeAsString()), expected);
  EXPECT_TRUE(read_run_pod_sandbox({}).has_value()) << "what is wrong with it is the runtime's to say";
}

TEST(ReadNewId, IsAnErrorWhenTheRuntimeNamesNone) {
  api::CreateContainerResponse response;
  EXPECT_EQ(read_create_container_response(response.SerializeAsString()).error().code, Code::kInternal);
  response.set_container_id("c1");
  EXPECT_EQ(*read_create_container_response(response.SerializeAsString()), "c1");
  api::RunPodSandboxResponse sandbox;
  sandbox.set_pod_sandbox_id("s1");
  EXPECT_EQ(*read_run_pod_sandbox_response(sandbox.SerializeAsString()), "s1");
}

TEST(ReadTargetId, FitsEveryRequestThatNamesOneThing) {
  api::StartContainerRequest start;
  start.set_container_id("c1");
  api::StopContainerRequest stop;
  stop.set_container_id("c2");
  stop.set_timeout(30);
  api::RemoveContainerRequest remove;
  remove.set_container_id("c3");
  api::StopPodSandboxRequest stop_pod;
  stop_pod.set_pod_sandbox_id("s1");
  api::RemovePodSandboxRequest remove_pod;
  remove_pod.set_pod_sandbox_id("s2");
  EXPECT_EQ(*read_target_id(start.SerializeAsString()), "c1");
  EXPECT_EQ(*read_target_id(stop.SerializeAsString()), "c2");
  EXPECT_EQ(*read_target_id(remove.SerializeAsString()), "c3");
  EXPECT_EQ(*read_target_id(stop_pod.SerializeAsString()), "s1");
  EXPECT_EQ(*read_target_id(remove_pod.SerializeAsString()), "s2");
  EXPECT_EQ(*read_target_id({}), "");
}

TEST(ReadUpdate, CarriesWhatWasSetAndZeroForTheRest) {
  api::UpdateContainerResourcesRequest request;
  request.set_container_id("c1");
  auto update = read_update_container_resources(request.SerializeAsString());
  EXPECT_EQ(update->container_id, "c1");
  EXPECT_FALSE(update->has_linux);
  request.mutable_linux()->set_cpuset_cpus("0-3");
  update = read_update_container_resources(request.SerializeAsString());
  EXPECT_TRUE(update->has_linux);
  EXPECT_EQ(update->cpus, CpuSet::range(0, 3));
  EXPECT_TRUE(update->mems.empty());
  EXPECT_EQ(update->cpu_shares, 0);
  request.mutable_linux()->set_cpu_shares(512);
  request.mutable_linux()->set_cpu_quota(-1);
  request.mutable_linux()->set_cpu_period(50000);
  request.mutable_linux()->set_memory_limit_in_bytes(kGiB);
  request.mutable_linux()->set_cpuset_mems("0");
  update = read_update_container_resources(request.SerializeAsString());
  EXPECT_EQ(update->cpu_shares, 512);
  EXPECT_EQ(update->cpu_quota_us, -1);
  EXPECT_EQ(update->cpu_period_us, 50000);
  EXPECT_EQ(update->memory_limit_bytes, kGiB);
  EXPECT_EQ(update->mems, NodeSet{0});
  request.mutable_linux()->set_cpuset_cpus("all");
  EXPECT_THAT(read_update_container_resources(request.SerializeAsString()).error().message,
              HasSubstr("UpdateContainerResourcesRequest: linux.cpuset_cpus: cannot read 'all'"));
}

TEST(PatchCreateContainer, ChangesTheCpusetAndNothingElse) {
  const api::CreateContainerRequest original = guaranteed_create();
  const std::string bytes = original.SerializeAsString();
  api::CreateContainerRequest merged;
  ASSERT_TRUE(merged.ParseFromString(bytes + patch_create_container({CpuSet{0, 1, 7}, {}})));
  api::CreateContainerRequest expected = original;
  expected.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus("0-1,7");
  EXPECT_EQ(merged.DebugString(), expected.DebugString());
  EXPECT_EQ(merged.config().linux().resources().cpuset_mems(), "1") << "no mems given: they stay";
  ASSERT_TRUE(merged.ParseFromString(bytes + patch_create_container({CpuSet{0}, NodeSet{0, 2}})));
  EXPECT_EQ(merged.config().linux().resources().cpuset_mems(), "0,2");
}

TEST(PatchCreateContainer, AddsVariablesAndAnnotationsBehindThePods) {
  const api::CreateContainerRequest original = guaranteed_create();
  api::CreateContainerRequest merged;
  ASSERT_TRUE(merged.ParseFromString(
      original.SerializeAsString() +
      patch_create_container({CpuSet{0}, {}}, {{{"A", "1"}, {"B", "x y"}}, {{"topolet.test/note", "yes"}}})));
  const int before = original.config().envs_size();
  ASSERT_EQ(merged.config().envs_size(), before + 2);
  EXPECT_EQ(merged.config().envs(before).key(), "A");
  EXPECT_EQ(merged.config().envs(before + 1).value(), "x y");
  EXPECT_EQ(merged.config().annotations().at("topolet.test/note"), "yes");
  EXPECT_EQ(merged.config().annotations_size(), original.config().annotations_size() + 1);
}

TEST(PatchCreateContainer, GivesACpusetToAContainerWithoutALinuxSection) {
  api::CreateContainerRequest merged;
  ASSERT_TRUE(merged.ParseFromString(minimal_create().SerializeAsString() + patch_create_container({CpuSet{3}, {}})));
  EXPECT_EQ(merged.config().linux().resources().cpuset_cpus(), "3");
  EXPECT_EQ(merged.config().metadata().name(), "web");
}

TEST(PatchUpdate, ChangesTheCpusetAndNothingElse) {
  api::UpdateContainerResourcesRequest original;
  original.set_container_id("c1");
  original.mutable_linux()->set_cpu_shares(512);
  original.mutable_linux()->set_cpuset_cpus("9");
  api::UpdateContainerResourcesRequest merged;
  const std::string patch = patch_update_container_resources({CpuSet{0, 1}, NodeSet{1}});
  ASSERT_TRUE(merged.ParseFromString(original.SerializeAsString() + patch));
  original.mutable_linux()->set_cpuset_cpus("0-1");
  original.mutable_linux()->set_cpuset_mems("1");
  EXPECT_EQ(merged.DebugString(), original.DebugString());
}

TEST(PatchQuota, SetsTheQuotaAndItsPeriodOnlyWhereThereIsOne) {
  const std::string create = guaranteed_create().SerializeAsString();
  api::CreateContainerRequest merged;
  ASSERT_TRUE(
      merged.ParseFromString(create + patch_create_container({CpuSet{0}, {}, operations::CfsQuota{-1, 50000}})));
  EXPECT_EQ(merged.config().linux().resources().cpu_quota(), -1);
  EXPECT_EQ(merged.config().linux().resources().cpu_period(), 50000);
  ASSERT_TRUE(merged.ParseFromString(create + patch_create_container({CpuSet{0}, {}})));
  EXPECT_EQ(merged.config().linux().resources().cpu_quota(), 200000);

  api::UpdateContainerResourcesRequest update;
  update.mutable_linux()->set_cpu_quota(300000);
  const std::string patch = patch_update_container_resources({CpuSet{0}, {}, operations::CfsQuota{-1, 100000}});
  ASSERT_TRUE(update.ParseFromString(update.SerializeAsString() + patch));
  EXPECT_EQ(update.linux().cpu_quota(), -1);
}

TEST(PatchUnified, AddsFilesOfTheCgroupBesideThePods) {
  api::CreateContainerRequest create = guaranteed_create();
  (*create.mutable_config()->mutable_linux()->mutable_resources()->mutable_unified())["memory.min"] = "4096";
  const operations::ContainerCpuset set{CpuSet{0}, {}, std::nullopt, {{"memory.high", "1048576"}}};
  api::CreateContainerRequest merged;
  ASSERT_TRUE(merged.ParseFromString(create.SerializeAsString() + patch_create_container(set)));
  const auto& unified = merged.config().linux().resources().unified();
  EXPECT_EQ(unified.size(), 2U);
  EXPECT_EQ(unified.at("memory.high"), "1048576");
  EXPECT_EQ(unified.at("memory.min"), "4096");
  api::UpdateContainerResourcesRequest update;
  ASSERT_TRUE(update.ParseFromString(make_update_container_resources("c1", set)));
  EXPECT_EQ(update.linux().unified().at("memory.high"), "1048576");
  EXPECT_EQ(update.linux().cpuset_cpus(), "0");
}

TEST(ReadRequests, TellWhichFilesOfTheCgroupTheySet) {
  api::CreateContainerRequest create = guaranteed_create();
  (*create.mutable_config()->mutable_linux()->mutable_resources()->mutable_unified())["memory.high"] = "7";
  EXPECT_EQ(read_create_container(create.SerializeAsString(), {})->kubelet_unified,
            (SharedStringMap{{"memory.high", "7"}}));
  api::UpdateContainerResourcesRequest update;
  update.set_container_id("c1");
  (*update.mutable_linux()->mutable_unified())["memory.high"] = "8";
  EXPECT_EQ(read_update_container_resources(update.SerializeAsString())->unified,
            (SharedStringMap{{"memory.high", "8"}}));
}

TEST(PatchCreateContainer, NamesTheRdtClassAsRuntimesReadIt) {
  api::CreateContainerRequest merged;
  placement::AddedFields added;
  added.rdt_class = "gold";
  added.tags = {{"pools/pool", "large"}};
  ASSERT_TRUE(
      merged.ParseFromString(minimal_create().SerializeAsString() + patch_create_container({CpuSet{3}, {}}, added)));
  ASSERT_EQ(merged.config().annotations_size(), 1) << "tags are for topolet itself";
  EXPECT_EQ(merged.config().annotations().at("io.kubernetes.cri.rdt-class"), "gold");
}

TEST(ApplyUpdate, NotesThePeriodOfTheLimit) {
  operations::ResourceUpdate update;
  update.cpu_quota_us = 75000;
  update.cpu_period_us = 50000;
  const placement::Demand after = operations::apply_update({}, update);
  EXPECT_EQ(after.cpu_limit_milli, 1500);
  EXPECT_EQ(after.cpu_period_us, 50000);
  EXPECT_EQ(operations::quota_of(after), (operations::CfsQuota{75000, 50000})) << "as it was asked for";
  update.cpu_quota_us = -1;
  EXPECT_EQ(operations::quota_of(operations::apply_update(after, update)), std::nullopt);
}

TEST(ApplyUpdate, TakesZeroAsUnchanged) {
  const placement::Demand before{.cpu_request_milli = 2000,
                                 .cpu_limit_milli = 3000,
                                 .memory_request_bytes = kGiB,
                                 .memory_request_estimated = true,
                                 .memory_limit_bytes = 2 * kGiB,
                                 .hugepage_limit_bytes = {{"2MB", 1}}};
  EXPECT_EQ(operations::apply_update(before, {}), before);
  operations::ResourceUpdate period_only;
  period_only.cpu_period_us = 50000;
  EXPECT_EQ(operations::apply_update(before, period_only), before);
  operations::ResourceUpdate pages;
  pages.hugepage_limit_bytes = {{"1GB", 7}};
  EXPECT_EQ(operations::apply_update(before, pages).hugepage_limit_bytes,
            (std::map<std::string, std::int64_t>{{"1GB", 7}, {"2MB", 1}}));
}

TEST(ApplyUpdate, FollowsAResizeOfTheCpu) {
  placement::Demand before;
  before.cpu_request_milli = before.cpu_limit_milli = 2000;
  operations::ResourceUpdate update;
  update.cpu_shares = 2560;
  update.cpu_quota_us = 250000;
  update.cpu_period_us = 100000;
  EXPECT_EQ(operations::apply_update(before, update).cpu_request_milli, 2500);
  EXPECT_EQ(operations::apply_update(before, update).cpu_limit_milli, 2500);
  update = {};
  update.cpu_quota_us = -1;
  EXPECT_EQ(operations::apply_update(before, update).cpu_limit_milli, 0);
  EXPECT_EQ(operations::apply_update(before, update).cpu_request_milli, 2000);
  update = {};
  update.cpu_shares = 2;
  EXPECT_EQ(operations::apply_update(before, update).cpu_request_milli, 0);
}

TEST(ApplyUpdate, ReadsABurstableContainersRequestAsACreateDoes) {
  placement::Demand before;
  before.memory_request_bytes = kGiB;
  before.memory_request_estimated = true;
  before.memory_limit_bytes = 2 * kGiB;
  const operations::DemandRules machine{.memory_total_bytes = 1000 * kGiB};
  operations::ResourceUpdate update;
  update.memory_limit_bytes = 60 * kGiB;
  update.oom_score_adj = 960;
  const placement::Demand after = operations::apply_update(before, update, machine);
  EXPECT_EQ(after.memory_request_bytes, 40 * kGiB);
  EXPECT_TRUE(after.memory_request_estimated);
  update.memory_limit_bytes = 30 * kGiB;
  EXPECT_EQ(operations::apply_update(before, update, machine).memory_request_bytes, 30 * kGiB)
      << "never more than the limit";
  for (const std::int64_t of_another_class : {std::int64_t{-997}, std::int64_t{1000}}) {
    update.oom_score_adj = of_another_class;
    EXPECT_EQ(operations::apply_update(before, update, machine).memory_request_bytes, kGiB) << of_another_class;
  }
  for (const std::int64_t may_be_any : {std::int64_t{3}, std::int64_t{999}}) {
    update.oom_score_adj = may_be_any;
    EXPECT_EQ(operations::apply_update(before, update, machine).memory_request_bytes, 0) << may_be_any;
    EXPECT_FALSE(operations::apply_update(before, update, machine).memory_request_estimated) << may_be_any;
  }
  update.oom_score_adj = 960;
  EXPECT_EQ(operations::apply_update(before, update, {}).memory_request_bytes, kGiB)
      << "the machine's memory is not known";
}

TEST(ApplyUpdate, MovesAMemoryRequestThatIsTheLimit) {
  operations::ResourceUpdate update;
  update.memory_limit_bytes = 3 * kGiB;
  placement::Demand guaranteed;
  guaranteed.memory_request_bytes = guaranteed.memory_limit_bytes = kGiB;
  EXPECT_EQ(operations::apply_update(guaranteed, update).memory_request_bytes, 3 * kGiB);
  placement::Demand burstable;
  burstable.memory_request_bytes = burstable.memory_limit_bytes = 4 * kGiB;
  burstable.memory_request_estimated = true;
  EXPECT_EQ(operations::apply_update(burstable, update).memory_request_bytes, 3 * kGiB) << "never more than the limit";
  const placement::Demand unlimited{};
  EXPECT_EQ(operations::apply_update(unlimited, update).memory_request_bytes, 0);
  EXPECT_EQ(operations::apply_update(unlimited, update).memory_limit_bytes, 3 * kGiB);
  update.memory_limit_bytes = -1;
  EXPECT_EQ(operations::apply_update(burstable, update).memory_limit_bytes, 0);
  EXPECT_EQ(operations::apply_update(burstable, update).memory_request_bytes, 4 * kGiB);
}

}  // namespace
}  // namespace topolet::cri
