// The NodeResourceTopology object.
#include "cluster/agent/kubernetes/zones.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/agent/kubernetes/device_inventory.hpp"
#include "cluster/agent/kubernetes/pod_events.hpp"
#include "cluster/agent/kubernetes/setup_warnings.hpp"

namespace topolet::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30U;

class ZonesTest : public ::testing::Test {
 protected:
  /// Nodes 0 and 3 with 4 CPUs and 8 GiB each, of which 1 GiB of node 0 in huge pages.
  ZonesTest() {
    add_node(0, "0-3", 8 * kGibibyte).mutable_huge_pages()->insert({2 << 20, 512});
    add_node(3, "8-11", 8 * kGibibyte);
    for (const std::uint32_t distance : {10, 21, 21, 10}) node_.mutable_machine()->add_distances(distance);
    node_.mutable_machine()->set_distances_known(true);
    node_.mutable_cpus()->set_allowed("0-3,8-11");
    node_.mutable_cpus()->set_reserved("0");
    fits_.set_generation(17);
    fits_.set_gives_exclusive_cpus(true);
    add_fit(0, 2, kGibibyte).mutable_booked_huge_page_bytes()->insert({"2MB", 256 << 20});
    add_fit(3, 4, 0);
  }
  watch::v1::Node& add_node(std::uint32_t os_index, const std::string& cpus, std::int64_t memory) {
    watch::v1::Node& node = *node_.mutable_machine()->add_nodes();
    node.set_os_index(os_index);
    node.set_cpus(cpus);
    node.set_memory_only(cpus.empty());
    node.set_memory_bytes(memory);
    return node;
  }
  watch::v1::NodeFit& add_fit(std::uint32_t os_index, std::uint32_t cpus, std::int64_t memory) {
    watch::v1::NodeFit& fit = *fits_.add_nodes();
    fit.set_os_index(os_index);
    fit.set_exclusive_cpus(cpus);
    fit.set_booked_memory_bytes(memory);
    return fit;
  }
  void enable_numa(bool required, const std::map<std::string, std::string>& options) {
    watch::v1::Plugin& numa = *node_.add_plugins();
    numa.set_id("numa");
    numa.set_required(required);
    for (const auto& [key, value] : options) (*numa.mutable_options())[key] = value;
  }
  json make() const {
    return make_topology_object({.node_name = "n1",
                                 .node_uid = "node-uid",
                                 .node = node_,
                                 .fits = fits_,
                                 .devices = devices_,
                                 .pending_devices = pending_devices_,
                                 .pending_cpus = pending_cpus_,
                                 .fingerprint = "pfp0v001",
                                 .acknowledged = "0123"});
  }
  static std::string attribute(const json& object, const std::string& name) {
    for (const json& attribute : object["attributes"]) {
      if (attribute["name"] == name) return attribute["value"];
    }
    return "(none)";
  }
  /// "CAPACITY/ALLOCATABLE/AVAILABLE".
  static std::string resource(const json& object, std::size_t zone, const std::string& name) {
    for (const json& resource : object["zones"][zone]["resources"]) {
      if (resource["name"] != name) continue;
      return resource["capacity"].get<std::string>() + '/' + resource["allocatable"].get<std::string>() + '/' +
             resource["available"].get<std::string>();
    }
    return "(none)";
  }
  static std::string amounts(std::int64_t capacity, std::int64_t allocatable, std::int64_t available) {
    return std::to_string(capacity) + '/' + std::to_string(allocatable) + '/' + std::to_string(available);
  }

  watch::v1::Snapshot node_;
  watch::v1::FitsResponse fits_;
  DeviceCounts devices_;
  std::map<std::string, std::int64_t> pending_devices_;
  std::int64_t pending_cpus_ = 0;
};

TEST_F(ZonesTest, HaveWhatFitsAndTheirDistances) {
  const json object = make();
  EXPECT_EQ(object["apiVersion"], "topology.node.k8s.io/v1alpha2");
  EXPECT_EQ(object["metadata"]["name"], "n1");
  EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], "node-uid");
  ASSERT_EQ(object["zones"].size(), 2U);
  EXPECT_EQ(object["zones"][0]["name"], "node-0");
  EXPECT_EQ(object["zones"][1]["name"], "node-3");
  EXPECT_EQ(object["zones"][1]["type"], "Node");
  EXPECT_EQ(object["zones"][1]["costs"],
            json({{{"name", "node-0"}, {"value", 21}}, {{"name", "node-3"}, {"value", 10}}}));
  EXPECT_EQ(attribute(object["zones"][1], "topolet.io/cpus"), "8-11");
  EXPECT_EQ(resource(object, 0, "cpu"), "4/3/2");
  EXPECT_EQ(resource(object, 1, "cpu"), "4/4/4");
  EXPECT_EQ(resource(object, 0, "memory"), amounts(8 * kGibibyte, 7 * kGibibyte, 6 * kGibibyte));
  EXPECT_EQ(resource(object, 0, "hugepages-2Mi"), amounts(kGibibyte, kGibibyte, kGibibyte * 3 / 4));
  EXPECT_EQ(resource(object, 1, "hugepages-2Mi"), "(none)");
  EXPECT_EQ(attribute(object, "nodeTopologyPodsFingerprint"), "pfp0v001");
  EXPECT_EQ(attribute(object, "nodeTopologyPodsFingerprintMethod"), "all");
  EXPECT_EQ(attribute(object, "topolet.io/generation"), "17");
  EXPECT_EQ(attribute(object, "topolet.io/acked"), "0123");
}

TEST_F(ZonesTest, SayWhichPolicyIsEnforced) {
  EXPECT_EQ(attribute(make(), "topologyManagerPolicy"), "none");
  EXPECT_EQ(attribute(make(), "topologyManagerMaxNUMANodes"), "8");
  enable_numa(false, {{"policy", "single-numa-node"}});
  EXPECT_EQ(attribute(make(), "topologyManagerPolicy"), "none") << "others may overrule it";
  node_.clear_plugins();
  enable_numa(true, {{"policy", "single-numa-node"}, {"scope", "pod"}, {"reserved-memory", "0:512Mi,3:2Gi"}});
  EXPECT_EQ(attribute(make(), "topologyManagerPolicy"), "single-numa-node");
  EXPECT_EQ(attribute(make(), "topologyManagerScope"), "pod");
  EXPECT_EQ(resource(make(), 0, "memory"),
            amounts(8 * kGibibyte, 7 * kGibibyte - kGibibyte / 2, 6 * kGibibyte - kGibibyte / 2));
  EXPECT_EQ(resource(make(), 1, "memory"), amounts(8 * kGibibyte, 6 * kGibibyte, 6 * kGibibyte));
}

TEST_F(ZonesTest, AreOpenToAllWhereNobodyGetsCpusAlone) {
  enable_numa(true, {{"policy", "single-numa-node"}});
  fits_.set_gives_exclusive_cpus(false);
  fits_.mutable_nodes(1)->set_exclusive_cpus(0);
  EXPECT_EQ(attribute(make(), "topologyManagerPolicy"), "none") << "nobody is denied";
  EXPECT_EQ(resource(make(), 1, "cpu"), "4/4/4");
}

TEST_F(ZonesTest, HaveNoMoreThanWhatTheKubeletLeavesWhereItHandsOutCpus) {
  enable_numa(true, {{"policy", "single-numa-node"}});
  fits_.set_gives_exclusive_cpus(false);
  EXPECT_EQ(resource(make(), 0, "cpu"), "4/3/3") << "a topoletd that does not tell";
  fits_.mutable_nodes(0)->set_shared_cpus(1);
  fits_.mutable_nodes(1)->set_shared_cpus(4);
  pending_cpus_ = 2;
  EXPECT_EQ(resource(make(), 0, "cpu"), "4/3/1") << "nobody else gives any";
  fits_.set_kubelet_hands_out_cpus(true);
  EXPECT_EQ(attribute(make(), "topologyManagerPolicy"), "none");
  EXPECT_EQ(resource(make(), 0, "cpu"), "4/3/0");
  EXPECT_EQ(resource(make(), 1, "cpu"), "4/4/2") << "on which node they will be nobody knows";
  fits_.set_isolated("always");
  node_.mutable_cpus()->set_all_isolated("10-11");
  node_.mutable_cpus()->set_isolated("11");
  fits_.mutable_nodes(1)->set_shared_cpus(2);
  EXPECT_EQ(resource(make(), 1, "cpu"), "4/4/1") << "the kubelet takes isolated CPUs for others";
  fits_.set_kubelet_hands_out_cpus(false);
  EXPECT_EQ(resource(make(), 1, "cpu"), "4/2/2") << "nobody gets any";
}

TEST_F(ZonesTest, TellThatNobodyHeedsThoseThatOthersChoose) {
  EXPECT_EQ(attribute(make(), "topolet.io/ignores-zones"), "(none)");
  const json before = make();
  fits_.set_node_name("n2");
  fits_.set_kubelet_hands_out_cpus(true);
  const json object = make();
  EXPECT_EQ(attribute(object, "topolet.io/ignores-zones"), "kubelet-static,node-name");
  EXPECT_FALSE(tell_the_same(before, object));
  EXPECT_EQ(attribute(with_what_others_wrote(before, object), "topolet.io/ignores-zones"), "(none)") << "it is over";
}

TEST(SetupWarnings, AreOfWhatNobodyCanMean) {
  watch::v1::FitsResponse fits;
  EXPECT_TRUE(setup_warnings("n1", fits).empty()) << "a topoletd that does not tell";
  fits.set_node_name("n1");
  EXPECT_TRUE(setup_warnings("n1", fits).empty());
  fits.set_node_name("host");
  fits.set_ignores_zones(true);
  fits.set_kubelet_hands_out_cpus(true);
  const auto warnings = setup_warnings("n1", fits);
  ASSERT_EQ(warnings.size(), kSetupWarnings.size());
  for (const char* word : kSetupWarnings) EXPECT_TRUE(warnings.contains(word)) << word;
  EXPECT_THAT(warnings.at("node-name"), ::testing::HasSubstr("set daemon.node-name = n1"));
}

TEST_F(ZonesTest, OfCpusWithoutMemoryHaveNone) {
  node_.mutable_machine()->mutable_nodes(0)->set_memory_bytes(0);
  node_.mutable_machine()->mutable_nodes(0)->clear_huge_pages();
  add_node(5, "", 32 * kGibibyte);
  add_fit(5, 0, 2 * kGibibyte);
  node_.mutable_machine()->clear_distances();
  for (const std::uint32_t distance : {10, 21, 17, 21, 10, 28, 17, 28, 10})
    node_.mutable_machine()->add_distances(distance);
  const json object = make();
  EXPECT_EQ(resource(object, 0, "cpu"), "4/3/2");
  EXPECT_EQ(resource(object, 0, "memory"), "(none)");
  EXPECT_EQ(resource(object, 1, "memory"), amounts(8 * kGibibyte, 8 * kGibibyte, 7 * kGibibyte))
      << "where what runs on node 0 has 1 GiB";
  EXPECT_EQ(resource(object, 2, "memory"), amounts(32 * kGibibyte, 32 * kGibibyte, 30 * kGibibyte));
  EXPECT_EQ(resource(object, 2, "cpu"), "(none)");
}

TEST_F(ZonesTest, HaveNoMemoryThatNobodyIsBoundTo) {
  add_node(5, "", 32 * kGibibyte).mutable_huge_pages()->insert({2 << 20, 512});
  add_node(6, "", 96 * kGibibyte).set_subtype("GPUMemory");
  add_node(7, "", 0);
  node_.mutable_machine()->clear_distances();
  for (int i = 0; i < 25; ++i) node_.mutable_machine()->add_distances(i % 6 == 0 ? 10 : 20);
  const auto names = [](const json& object) {
    std::vector<std::string> found;
    for (const json& zone : object["zones"]) found.push_back(zone["name"]);
    return found;
  };
  EXPECT_THAT(names(make()), ElementsAre("node-0", "node-3", "node-5")) << "nobody uses the memory of GPUs";
  EXPECT_EQ(make()["zones"][0]["costs"].size(), 3U);
  EXPECT_EQ(attribute(make()["zones"][2], "topolet.io/cpus"), "(none)") << "those near to it are no CPUs of its own";
  enable_numa(false, {{"memory", "bind"}});
  const json bound = make();
  EXPECT_THAT(names(bound), ElementsAre("node-0", "node-3"));
  EXPECT_EQ(bound["zones"][1]["costs"],
            json({{{"name", "node-0"}, {"value", 20}}, {{"name", "node-3"}, {"value", 10}}}));
  devices_["vendor.com/gpu"][6] = {2, 1};
  const json with_gpu = make();
  EXPECT_THAT(names(with_gpu), ElementsAre("node-0", "node-3", "node-6"));
  EXPECT_EQ(resource(with_gpu, 2, "memory"), "(none)");
  devices_.clear();
  for (int i = 0; i < 2; ++i) node_.mutable_machine()->mutable_nodes(i)->set_memory_bytes(0);
  EXPECT_THAT(names(make()), ElementsAre("node-0", "node-3", "node-5")) << "there is no other memory to be bound to";
}

TEST_F(ZonesTest, TellWhoGetsIsolatedCpusAndWhichNamespacesAreReserved) {
  const json untold = make();
  EXPECT_EQ(attribute(untold, "topolet.io/isolated"), "(none)") << "a topoletd that does not tell";
  EXPECT_EQ(attribute(untold, "topolet.io/reserved-namespaces"), "(none)");
  fits_.set_isolated("annotated");
  fits_.add_reserved_namespaces("kube-system");
  fits_.add_reserved_namespaces("monitoring");
  fits_.add_exclusive_namespaces("rt-*");
  EXPECT_EQ(attribute(make(), "topolet.io/isolated"), "annotated");
  EXPECT_EQ(attribute(make(), "topolet.io/reserved-namespaces"), "kube-system,monitoring");
  EXPECT_EQ(attribute(make(), "topolet.io/exclusive-namespaces"), "rt-*");
  EXPECT_EQ(attribute(make()["zones"][0], "topolet.io/isolated-cpus"), "(none)") << "there are none";
  EXPECT_FALSE(tell_the_same(untold, make()));
  node_.mutable_cpus()->set_all_isolated("2-3");
  fits_.mutable_nodes(0)->set_pool_cpus(1);
  fits_.mutable_nodes(0)->set_isolated_cpus(2);
  fits_.mutable_nodes(1)->set_pool_cpus(4);
  const json annotated = make();
  EXPECT_EQ(resource(annotated, 0, "cpu"), "4/1/1");
  EXPECT_EQ(attribute(annotated["zones"][0], "topolet.io/pool-cpus"), "1/1");
  EXPECT_EQ(attribute(annotated["zones"][0], "topolet.io/isolated-cpus"), "2/2");
  EXPECT_EQ(attribute(annotated["zones"][1], "topolet.io/pool-cpus"), "4/4");
  EXPECT_EQ(attribute(annotated["zones"][1], "topolet.io/isolated-cpus"), "0/0");
  fits_.set_isolated("prefer");
  EXPECT_EQ(resource(make(), 0, "cpu"), "4/3/2");
  fits_.set_isolated("always");
  EXPECT_EQ(resource(make(), 0, "cpu"), "4/2/2");
  EXPECT_EQ(attribute(make()["zones"][0], "topolet.io/pool-cpus"), "1/1");
  const json before = make();
  fits_.mutable_nodes(0)->set_isolated_cpus(1);
  EXPECT_FALSE(tell_the_same(before, make()));
  EXPECT_FALSE(has_grown(before, make()));
  EXPECT_TRUE(has_grown(make(), before));
  fits_.set_gives_exclusive_cpus(false);
  EXPECT_EQ(attribute(make()["zones"][0], "topolet.io/isolated-cpus"), "(none)") << "nobody gets any";
  EXPECT_EQ(attribute(make(), "topolet.io/isolated"), "(none)") << "they are all alike then";
  EXPECT_EQ(attribute(make(), "topolet.io/reserved-namespaces"), "kube-system,monitoring");
}

TEST_F(ZonesTest, CountDevicesThatAreGivenOutAndThoseThatWillBe) {
  v1::AllocatableResourcesResponse allocatable;
  const auto devices = [](v1::ContainerDevices& made, const std::string& resource, std::vector<std::string> ids,
                          std::vector<int> nodes) {
    made.set_resource_name(resource);
    for (const std::string& id : ids) made.add_device_ids(id);
    for (const int node : nodes) made.mutable_topology()->add_nodes()->set_id(node);
  };
  devices(*allocatable.add_devices(), "vendor.com/gpu", {"a", "b"}, {0});
  devices(*allocatable.add_devices(), "vendor.com/gpu", {"c"}, {3});
  devices(*allocatable.add_devices(), "vendor.com/nic", {"x"}, {0, 3});
  devices(*allocatable.add_devices(), "vendor.com/key", {"k"}, {});
  v1::ListPodResourcesResponse list;
  v1::PodResources& pod = *list.add_pod_resources();
  pod.set_name("p");
  pod.set_namespace_("default");
  v1::ContainerResources& main = *pod.add_containers();
  main.set_name("main");
  devices(*main.add_devices(), "vendor.com/gpu", {"b"}, {0});
  const DeviceInventory::State state = count_devices(allocatable, list);
  EXPECT_THAT(state.given.at({"default", "p"}).at("main"), ElementsAre(std::pair("vendor.com/gpu", 1)));
  EXPECT_THAT(state.near.at({"default", "p"}).at("main"), ElementsAre(0U));
  devices_ = state.counts;
  EXPECT_EQ(resource(make(), 0, "vendor.com/gpu"), "2/2/1");
  EXPECT_EQ(resource(make(), 1, "vendor.com/gpu"), "1/1/1");
  EXPECT_EQ(resource(make(), 1, "vendor.com/nic"), "1/1/1");
  EXPECT_EQ(resource(make(), 1, "vendor.com/key"), "(none)");
  pending_devices_["vendor.com/gpu"] = 1;
  EXPECT_EQ(resource(make(), 0, "vendor.com/gpu"), "2/2/0") << "it may be given out on either node";
  EXPECT_EQ(resource(make(), 1, "vendor.com/gpu"), "1/1/0");
}

TEST(Devices, AreNearToTheNodesThatAllOfAContainerAreNearToOrElseSome) {
  const auto near = [](const std::vector<std::vector<int>>& nodes_of_devices) {
    v1::ListPodResourcesResponse list;
    v1::PodResources& pod = *list.add_pod_resources();
    pod.set_name("p");
    pod.set_namespace_("default");
    v1::ContainerResources& main = *pod.add_containers();
    main.set_name("main");
    for (const auto& nodes : nodes_of_devices) {
      v1::ContainerDevices& devices = *main.add_devices();
      devices.set_resource_name("vendor.com/gpu");
      devices.add_device_ids("a");
      for (const int node : nodes) devices.mutable_topology()->add_nodes()->set_id(node);
    }
    const DeviceInventory::State state = count_devices({}, list);
    const auto found = state.near.find({"default", "p"});
    return found == state.near.end() ? std::set<std::uint32_t>() : found->second.at("main");
  };
  EXPECT_THAT(near({}), ::testing::IsEmpty());
  EXPECT_THAT(near({{}, {-1}}), ::testing::IsEmpty()) << "nobody knows";
  EXPECT_THAT(near({{1}, {}}), ElementsAre(1U));
  EXPECT_THAT(near({{0, 1}, {1}}), ElementsAre(1U));
  EXPECT_THAT(near({{0}, {1}}), ElementsAre(0U, 1U));
  EXPECT_THAT(near({{0}, {1}, {1}}), ElementsAre(1U)) << "most of them are";
}

TEST_F(ZonesTest, TellTheEffectiveCapacityWhereItIsKnown) {
  const json before = make();
  watch::v1::Capacity& told = *node_.add_capacities();
  told.set_node(3);
  told.set_effective_cpu_milli(2600);
  const json now = make();
  EXPECT_EQ(attribute(now["zones"][0], "topolet.io/effective-cpu-milli"), "(none)");
  EXPECT_EQ(attribute(now["zones"][1], "topolet.io/effective-cpu-milli"), "2600");
  EXPECT_EQ(resource(now, 1, "cpu"), "4/4/4") << "what is available is for topoletd to say";
  EXPECT_FALSE(tell_the_same(before, now));
  EXPECT_EQ(attribute(with_what_others_wrote(before, now)["zones"][1], "topolet.io/effective-cpu-milli"), "(none)")
      << "it is ours, and goes when it has ended";
}

TEST_F(ZonesTest, KeepWhatOthersWrote) {
  json current = make();
  current["metadata"]["resourceVersion"] = "5";
  current["metadata"]["labels"]["a"] = "b";
  current["attributes"].push_back({{"name", "foreign"}, {"value", "1"}});
  current["zones"][1]["attributes"].push_back({{"name", "offline-capacity-milli"}, {"value", "2000"}});
  current["zones"].push_back({{"name", "cache-0"}, {"type", "Cache"}});
  current["zones"].push_back({{"name", "node-9"}, {"type", "Node"}});
  fits_.mutable_nodes(1)->set_exclusive_cpus(1);
  const json merged = with_what_others_wrote(make(), current);
  EXPECT_EQ(merged["metadata"]["resourceVersion"], "5");
  EXPECT_EQ(merged["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(attribute(merged, "foreign"), "1");
  EXPECT_EQ(attribute(merged["zones"][1], "offline-capacity-milli"), "2000");
  EXPECT_EQ(resource(merged, 1, "cpu"), "4/4/1");
  ASSERT_EQ(merged["zones"].size(), 3U) << "a node that the machine does not have is gone";
  EXPECT_EQ(merged["zones"][2]["name"], "cache-0");
  for (const char* strange : {"[]", "{}", R"({"metadata": 1, "zones": {}, "attributes": [1]})", "null"})
    EXPECT_EQ(with_what_others_wrote(make(), json::parse(strange))["metadata"]["name"], "n1") << strange;
}

TEST_F(ZonesTest, TellWhetherAnythingOfMeaningHasChanged) {
  const json before = make();
  fits_.set_generation(18);
  json after = with_what_others_wrote(make(), before);
  touch(after, "2026-01-01T00:00:00Z");
  touch(after, "2026-01-01T00:00:07Z");
  EXPECT_EQ(attribute(after, "topolet.io/touched"), "2026-01-01T00:00:07Z");
  after["zones"][0]["attributes"].push_back({{"name", "foreign"}, {"value", "1"}});
  EXPECT_TRUE(tell_the_same(before, after));
  EXPECT_FALSE(tell_the_same(before, json()));
  fits_.mutable_nodes(0)->set_exclusive_cpus(1);
  const json less = make();
  EXPECT_FALSE(tell_the_same(before, less));
  EXPECT_FALSE(has_grown(before, less));
  EXPECT_TRUE(has_grown(less, before));
  EXPECT_TRUE(has_grown(json::object(), before));
}

TEST(RemoteDevice, IsOneOnNoneOfTheContainersNodes) {
  watch::v1::Machine machine;
  watch::v1::Device& gpu = *machine.add_devices();
  gpu.set_name("card0");
  gpu.set_address("0000:3b:00.0");
  gpu.set_nodes("1");
  watch::v1::Container container;
  container.set_nodes("0");
  EXPECT_FALSE(uses_remote_device(machine, container));
  container.add_used_devices("0000:3b:00.0");
  EXPECT_TRUE(uses_remote_device(machine, container));
  container.set_nodes("0-1");
  EXPECT_FALSE(uses_remote_device(machine, container));
}

}  // namespace
}  // namespace topolet::agent
