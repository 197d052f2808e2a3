#include "core/plugin/call/abi_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <topolet/policy.hpp>

#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using sdk::text;

std::string list(topolet_set set) { return sdk::Set(set).to_string(); }

TEST(AbiRequest, ShowsTheTopology) {
  const auto request = two_node_request();
  const AbiTopology view(request->topology);
  const topolet_topology& machine = view.view();
  EXPECT_EQ(machine.struct_size, sizeof(topolet_topology));
  EXPECT_EQ(machine.generation, 3U);
  EXPECT_EQ(machine.distances_known, 1U);
  ASSERT_EQ(machine.pu_count, 8U);
  const topolet_pu& pu = sdk::pus(machine)[5];
  EXPECT_EQ(pu.os_index, 5U);
  EXPECT_EQ(pu.core, 2U);
  EXPECT_EQ(pu.l3, TOPOLET_NONE);
  EXPECT_EQ(pu.die, TOPOLET_NONE);
  EXPECT_EQ(pu.node, 1U);
  EXPECT_EQ(pu.package, 0U);
  ASSERT_EQ(machine.core_count, 4U);
  EXPECT_EQ(list(machine.cores[3]), "6-7");
  EXPECT_EQ(machine.l3_count, 0U);
  EXPECT_EQ(machine.die_count, 0U);
  ASSERT_EQ(machine.package_count, 1U);
  EXPECT_EQ(list(machine.packages[0]), "0-7");
  ASSERT_EQ(machine.node_count, 2U);
  const topolet_node& node = sdk::nodes(machine)[0];
  EXPECT_EQ(text(node.subtype), "DRAM");
  EXPECT_EQ(node.memory_bytes, 1 << 30);
  EXPECT_EQ(list(node.cpus), "0-3");
  ASSERT_EQ(node.huge_pages_count, 1U);
  EXPECT_EQ(node.huge_pages->page_bytes, 2 << 20);
  EXPECT_EQ(node.huge_pages->count, 5);
  ASSERT_EQ(machine.domain_count, 3U);
  const auto* domain = TOPOLET_AT(topolet_domain, machine.domains, machine.domain_stride, 2);
  EXPECT_EQ(domain->kind, TOPOLET_DOMAIN_PACKAGE);
  EXPECT_EQ(list(domain->nodes), "0-1");
  EXPECT_EQ(machine.distances[1], 21U);
  EXPECT_EQ(list(machine.online), "0-7");
}

TEST(AbiRequest, ShowsIsolatedCpusAsFreeToWhomAsksForThem) {
  placement::PolicyRequest request = *two_node_request();
  request.ledger.isolated = {2, 7};
  request.from = placement::CpuSource::kIsolated;
  request.exclusive = true;
  request.exclusive_cpus = 1;
  const auto free = [](const placement::PolicyRequest& asked) {
    std::string shown;
    const AbiRequest view(asked, std::make_shared<const AbiTopology>(asked.topology));
    for (std::uint32_t i = 0; i < view.view().candidate_count; ++i) {
      const auto* candidate = TOPOLET_AT(topolet_candidate, view.view().candidates, view.view().candidate_stride, i);
      shown += list(candidate->nodes) + ": " + list(candidate->usable) + "\n";
    }
    return shown;
  };
  EXPECT_THAT(free(request), ::testing::HasSubstr("0-1: 2,7\n"));
  request.exclusive = false;
  EXPECT_THAT(free(request), ::testing::Not(::testing::HasSubstr("0-1: 2,7\n")));
}

TEST(AbiRequest, ShowsKindsCachesAndDevices) {
  auto machine = std::make_shared<topology::Topology>(*two_node_request()->topology);
  machine->cpu_kinds = {{0, CpuSet{0, 1}}, {topology::kNoPosition, CpuSet{2}}};
  machine->caches = {{2, topology::CacheKind::kUnified, 1 << 20, CpuSet{4, 5}}};
  machine->pci_bridges = {{"", topology::kNoPosition, 0, 0, CpuSet{4}, NodeSet{1}},
                          {"0000:40:01.0", 0, 0x8086, 0x1234, CpuSet{4}, NodeSet{1}}};
  machine->pci_devices = {
      {"0000:41:00.0", 1, 0x0302, 0x10de, 0x20b0, CpuSet{4, 5}, NodeSet{1}, {{"PCIVendor", "NVIDIA"}}}};
  machine->os_devices = {{"card0", "", topology::OsDeviceKind::kGpu, topology::kNoPosition, CpuSet{0}, NodeSet{0}, {}},
                         {"nvml0",
                          "NVML",
                          topology::OsDeviceKind::kGpu,
                          0,
                          CpuSet{4, 5},
                          NodeSet{1},
                          {{"NVIDIAUUID", "GPU-1"}, {"A", "b"}, {"NVIDIAUUID", "GPU-2"}}}};
  const AbiTopology view(machine);
  const topolet_topology& seen = view.view();
  ASSERT_EQ(seen.cpu_kind_count, 2U);
  EXPECT_EQ(sdk::cpu_kinds(seen)[0].efficiency, 0U);
  EXPECT_EQ(sdk::cpu_kinds(seen)[1].efficiency, TOPOLET_NONE);
  EXPECT_EQ(list(sdk::cpu_kinds(seen)[0].cpus), "0-1");
  ASSERT_EQ(seen.cache_count, 1U);
  const topolet_cache& cache = sdk::caches(seen)[0];
  EXPECT_EQ(cache.level, 2U);
  EXPECT_EQ(cache.kind, TOPOLET_CACHE_UNIFIED);
  EXPECT_EQ(cache.bytes, 1 << 20);
  EXPECT_EQ(list(cache.cpus), "4-5");
  ASSERT_EQ(seen.pci_bridge_count, 2U);
  const topolet_pci_bridge& bridge = sdk::pci_bridges(seen)[1];
  EXPECT_EQ(text(bridge.address), "0000:40:01.0");
  EXPECT_EQ(bridge.parent, 0U);
  EXPECT_EQ(bridge.vendor_id, 0x8086U);
  EXPECT_EQ(bridge.device_id, 0x1234U);
  EXPECT_EQ(list(bridge.nodes), "1");
  ASSERT_EQ(seen.pci_device_count, 1U);
  const topolet_pci_device& pci = sdk::pci_devices(seen)[0];
  EXPECT_EQ(text(pci.address), "0000:41:00.0");
  EXPECT_EQ(pci.bridge, 1U);
  EXPECT_EQ(pci.class_id, 0x0302U);
  EXPECT_EQ(pci.vendor_id, 0x10deU);
  EXPECT_EQ(pci.device_id, 0x20b0U);
  EXPECT_EQ(list(pci.cpus), "4-5");
  EXPECT_EQ(sdk::value_of(pci.info, "PCIVendor"), "NVIDIA");
  ASSERT_EQ(seen.os_device_count, 2U);
  const topolet_os_device& nvml = sdk::os_devices(seen)[1];
  EXPECT_EQ(text(nvml.name), "nvml0");
  EXPECT_EQ(text(nvml.subtype), "NVML");
  EXPECT_EQ(nvml.kind, TOPOLET_OS_DEVICE_GPU);
  EXPECT_EQ(nvml.pci_device, 0U);
  EXPECT_EQ(list(nvml.nodes), "1");
  EXPECT_EQ(sdk::value_of(nvml.info, "NVIDIAUUID"), "GPU-1");
  EXPECT_EQ(sdk::value_of(nvml.info, "none"), "");
  ASSERT_EQ(nvml.info.count, 2U) << "each key once";
  EXPECT_EQ(text(nvml.info.items[0].key), "A") << "in their order";
  EXPECT_EQ(sdk::os_devices(seen)[0].pci_device, TOPOLET_NONE);
}

TEST(AbiRequest, ShowsAnEmptyMachineForNone) {
  const AbiTopology view(nullptr);
  EXPECT_EQ(view.view().pu_count, 0U);
  EXPECT_EQ(view.view().node_count, 0U);
}

TEST(AbiRequest, HidesADistanceMatrixOfAnotherSize) {
  auto machine = std::make_shared<topology::Topology>(*two_node_request()->topology);
  machine->distances = {10};
  EXPECT_EQ(AbiTopology(machine).view().distances, nullptr);
}

TEST(AbiRequest, ShowsTheWorkload) {
  const auto request = two_node_request();
  placement::Workload& workload = request->workload;
  workload.pod_name = "web-7f";
  workload.pod_namespace = "shop";
  workload.key.sandbox_id = "sb";
  workload.runtime_handler = "runc";
  workload.qos = placement::Qos::kBurstable;
  workload.demand = {1500, 2000, 64, true, 128, {{"1GB", 4}, {"2MB", 6}}};
  workload.kubelet_cpus = CpuSet{70};
  workload.kubelet_mems = NodeSet{1};
  workload.devices = {"/dev/a", "/dev/b"};
  workload.cdi_devices = {"vendor.com/gpu=0"};
  workload.env = {{"KEY", "secret"}, {"FIRST", ""}, {"KEY", "again"}};
  workload.pod_labels = {{"app", "web"}};
  workload.pod_annotations = {{"topolet.io/cpus", "none"}};
  workload.annotations = {{"mine", "yes"}};
  const AbiRequest view(*request, std::make_shared<const AbiTopology>(request->topology));

  const topolet_workload& seen = *view.view().workload;
  EXPECT_EQ(text(seen.pod_uid), "uid-1");
  EXPECT_EQ(text(seen.container_name), "web");
  EXPECT_EQ(seen.attempt, 2U);
  EXPECT_EQ(text(seen.pod_name), "web-7f");
  EXPECT_EQ(text(seen.pod_namespace), "shop");
  EXPECT_EQ(text(seen.sandbox_id), "sb");
  EXPECT_EQ(text(seen.runtime_handler), "runc");
  EXPECT_EQ(seen.qos, TOPOLET_QOS_BURSTABLE);
  EXPECT_EQ(seen.demand->cpu_request_milli, 1500);
  EXPECT_EQ(seen.demand->cpu_limit_milli, 2000);
  EXPECT_EQ(seen.demand->memory_request_bytes, 64);
  EXPECT_EQ(seen.demand->memory_request_estimated, 1U);
  EXPECT_EQ(seen.demand->memory_limit_bytes, 128);
  ASSERT_EQ(seen.demand->huge_page_limit_count, 2U);
  EXPECT_EQ(text(seen.demand->huge_page_limits[1].page_size), "2MB");
  EXPECT_EQ(seen.demand->huge_page_limits[1].bytes, 6);
  EXPECT_EQ(list(seen.kubelet_cpus), "70");
  EXPECT_EQ(list(seen.kubelet_mems), "1");
  ASSERT_EQ(seen.devices.count, 2U);
  EXPECT_EQ(text(seen.devices.items[1]), "/dev/b");
  ASSERT_EQ(seen.cdi_devices.count, 1U);
  EXPECT_EQ(text(seen.cdi_devices.items[0]), "vendor.com/gpu=0");
  ASSERT_EQ(seen.env.count, 2U);
  EXPECT_EQ(text(seen.env.items[1].key), "KEY");
  EXPECT_EQ(text(seen.env.items[1].value), "again");
  EXPECT_EQ(text(seen.pod_labels.items[0].value), "web");
  EXPECT_EQ(text(seen.pod_annotations.items[0].key), "topolet.io/cpus");
  EXPECT_EQ(text(seen.annotations.items[0].key), "mine");
}

TEST(AbiRequest, ShowsTheLedgerAndTheFreePartOfEachCandidate) {
  const auto request = two_node_request();
  placement::LedgerSnapshot& ledger = request->ledger;
  ledger.generation = 9;
  ledger.reserved = CpuSet{0};
  ledger.exclusive = CpuSet{4};
  ledger.withheld = CpuSet{5};
  ledger.pool = CpuSet{1, 2, 3, 6, 7};
  ledger.entries.push_back({{"uid-9", "db", 1, "sb-9"},
                            placement::Qos::kGuaranteed,
                            {placement::Mode::kExclusive, CpuSet{4}, CpuSet{5}, NodeSet{1}},
                            {1000, 1000, 96, false, 0, {}},
                            {},
                            false});
  const AbiRequest view(*request, std::make_shared<const AbiTopology>(request->topology));

  const topolet_ledger& seen = *view.view().ledger;
  EXPECT_EQ(seen.generation, 9U);
  EXPECT_EQ(list(seen.allowed), "0-7");
  EXPECT_EQ(list(seen.reserved_cpus), "0");
  EXPECT_EQ(list(seen.pool), "1-3,6-7");
  EXPECT_EQ(list(seen.exclusive), "4");
  EXPECT_EQ(list(seen.withheld), "5");
  ASSERT_EQ(seen.entry_count, 1U);
  const topolet_ledger_entry& entry = sdk::entries(seen)[0];
  EXPECT_EQ(text(entry.pod_uid), "uid-9");
  EXPECT_EQ(text(entry.container_name), "db");
  EXPECT_EQ(entry.attempt, 1U);
  EXPECT_EQ(entry.qos, TOPOLET_QOS_GUARANTEED);
  EXPECT_EQ(entry.mode, TOPOLET_MODE_EXCLUSIVE);
  EXPECT_EQ(list(entry.cpus), "4");
  EXPECT_EQ(list(entry.withheld), "5");
  EXPECT_EQ(list(entry.mems), "1");
  EXPECT_EQ(entry.demand->cpu_request_milli, 1000);
  ASSERT_EQ(seen.node_demand_count, 2U);
  EXPECT_EQ(sdk::node_demands(seen)[0].containers, 0U);
  const topolet_node_demand& second = sdk::node_demands(seen)[1];
  EXPECT_EQ(second.containers, 1U);
  EXPECT_EQ(second.exclusive_cpus, 1U);
  EXPECT_EQ(second.cpu_request_milli, 1000);
  EXPECT_EQ(second.memory_request_bytes, 96);

  EXPECT_EQ(view.view().exclusive, 1U);
  EXPECT_EQ(view.view().exclusive_cpus, 2U);
  ASSERT_EQ(view.view().candidate_count, 3U);
  const topolet_candidate& candidate = sdk::candidates(view.view())[1];
  EXPECT_EQ(candidate.kind, TOPOLET_DOMAIN_NODE);
  EXPECT_EQ(candidate.is_domain, 1U);
  EXPECT_EQ(list(candidate.nodes), "1");
  EXPECT_EQ(list(candidate.cpus), "4-7");
  EXPECT_EQ(list(candidate.usable), "6-7");
  EXPECT_EQ(sdk::candidates(view.view())[2].distance, 62U);
}

std::map<std::string, std::string> map_of(topolet_kvs pairs) {
  std::map<std::string, std::string> map;
  for (std::size_t i = 0; i < pairs.count; ++i) map.emplace(text(pairs.items[i].key), text(pairs.items[i].value));
  return map;
}

std::string joined(topolet_strs texts) {
  std::string all;
  for (std::size_t i = 0; i < texts.count; ++i) all += (i == 0 ? "" : " ") + std::string(text(texts.items[i]));
  return all;
}

placement::LedgerEntry full_entry() {
  placement::LedgerEntry entry;
  entry.key = {"uid-9", "db", 1, "sb-9"};
  entry.pod_name = "db-0";
  entry.pod_namespace = "shop";
  entry.runtime_handler = "runc";
  entry.container_id = "c-9";
  entry.pod_labels = {{"app", "db"}, {"tier", "back"}};
  entry.pod_annotations = {{"note", "pod"}};
  entry.annotations = {{"note", "container"}};
  entry.tags = {{"pools/pool", "large"}, {"a/b", ""}};
  entry.devices = {"/dev/b", "/dev/a"};
  entry.cdi_devices = {"vendor.com/gpu=0"};
  entry.used_devices = {"0000:65:00.0"};
  return entry;
}

TEST(AbiRequest, ShowsWhoTheContainersOfTheLedgerAre) {
  const auto request = two_node_request();
  request->ledger.entries.push_back(full_entry());
  placement::LedgerEntry same_pod = full_entry();
  same_pod.key.name = "log";
  same_pod.pod_annotations = {};
  request->ledger.entries.push_back(std::move(same_pod));
  const AbiRequest view(*request, std::make_shared<const AbiTopology>(request->topology));
  using Map = std::map<std::string, std::string>;
  for (std::size_t i = 0; i < 2; ++i) {
    const topolet_ledger_entry& entry = sdk::entries(*view.view().ledger)[i];
    EXPECT_EQ(text(entry.container_name), i == 0 ? "db" : "log");
    EXPECT_EQ(text(entry.pod_name), "db-0");
    EXPECT_EQ(text(entry.pod_namespace), "shop");
    EXPECT_EQ(text(entry.sandbox_id), "sb-9");
    EXPECT_EQ(text(entry.container_id), "c-9");
    EXPECT_EQ(text(entry.runtime_handler), "runc");
    EXPECT_EQ(map_of(entry.pod_labels), (Map{{"app", "db"}, {"tier", "back"}}));
    EXPECT_EQ(map_of(entry.pod_annotations), i == 0 ? (Map{{"note", "pod"}}) : Map());
    EXPECT_EQ(map_of(entry.annotations), (Map{{"note", "container"}}));
    EXPECT_EQ(map_of(entry.tags), (Map{{"a/b", ""}, {"pools/pool", "large"}}));
    EXPECT_EQ(text(entry.tags.items[0].key), "a/b") << "in the order of the keys";
    EXPECT_EQ(joined(entry.devices), "/dev/b /dev/a") << "in the order of the request";
    EXPECT_EQ(joined(entry.cdi_devices), "vendor.com/gpu=0");
    EXPECT_EQ(joined(entry.used_devices), "0000:65:00.0");
  }
}

TEST(AbiRequest, ShowsHowFarTheContainersOfTheLedgerAre) {
  const auto flags = [](bool pending, bool started, bool adopted) {
    const auto request = two_node_request();
    placement::LedgerEntry entry;
    entry.pending = pending;
    entry.started = started;
    entry.adopted = adopted;
    request->ledger.entries.push_back(std::move(entry));
    const AbiRequest view(*request, std::make_shared<const AbiTopology>(request->topology));
    return sdk::entries(*view.view().ledger)[0].flags;
  };
  EXPECT_EQ(flags(false, false, false), 0U);
  EXPECT_EQ(flags(true, false, false), TOPOLET_ENTRY_PENDING);
  EXPECT_EQ(flags(false, true, false), TOPOLET_ENTRY_STARTED);
  EXPECT_EQ(flags(false, true, true), TOPOLET_ENTRY_STARTED | TOPOLET_ENTRY_ADOPTED);
}

TEST(AbiRequest, ShowsTheTagsOfTheWorkload) {
  const auto request = two_node_request();
  request->workload.tags = {{"pools/pool", "large"}, {"a/b", "c"}};
  const AbiRequest view(*request, std::make_shared<const AbiTopology>(request->topology));
  const topolet_kvs tags = view.view().workload->tags;
  ASSERT_EQ(tags.count, 2U);
  EXPECT_EQ(text(tags.items[0].key), "a/b");
  EXPECT_EQ(text(tags.items[1].value), "large");
}

TEST(AbiRequest, SaysWhatIsDecided) {
  const auto request = two_node_request();
  request->container_id = "c-1";
  request->occasion = placement::Occasion::kResize;
  request->had = {CpuSet{1, 2}, CpuSet{3}, NodeSet{1}};
  request->keep = CpuSet{2};
  request->min_shared_cpus = 5;
  request->from = placement::CpuSource::kIsolated;
  const AbiRequest view = abi_view(*request);
  const topolet_request& seen = view.view();
  EXPECT_EQ(text(seen.workload->container_id), "c-1");
  EXPECT_EQ(seen.occasion, TOPOLET_OCCASION_RESIZE);
  EXPECT_EQ(seen.mode, TOPOLET_MODE_EXCLUSIVE);
  EXPECT_EQ(seen.flags, 0U);
  EXPECT_EQ(seen.cpu_source, TOPOLET_CPUS_FROM_ISOLATED);
  EXPECT_EQ(seen.why_shared, TOPOLET_SHARED_NOT);
  EXPECT_EQ(list(seen.had_cpus), "1-2");
  EXPECT_EQ(list(seen.had_withheld), "3");
  EXPECT_EQ(list(seen.had_mems), "1");
  EXPECT_EQ(list(seen.keep), "2");
  EXPECT_EQ(seen.min_shared_cpus, 5U);
  EXPECT_EQ(seen.load, nullptr);
}

TEST(AbiRequest, SaysWhyAContainerShares) {
  const auto request = two_node_request();
  request->share(placement::NotExclusive::kAnnotatedNone);
  request->shared_mode = placement::Mode::kReserved;
  request->from = placement::CpuSource::kIsolated;
  int next = TOPOLET_SHARED_ANNOTATED_NONE;
  for (int why = 0; why <= static_cast<int>(placement::NotExclusive::kNodeFull); ++why) {
    request->why_not_exclusive = static_cast<placement::NotExclusive>(why);
    const AbiRequest view = abi_view(*request);
    EXPECT_EQ(view.view().why_shared, next++);
    EXPECT_EQ(view.view().mode, TOPOLET_MODE_RESERVED);
    EXPECT_EQ(view.view().cpu_source, TOPOLET_CPUS_FROM_POOL);
  }
  EXPECT_EQ(next, TOPOLET_SHARED_NODE_FULL + 1);
}

TEST(AbiRequest, HasAFlagForEachFact) {
  const auto flags_with = [](const auto& change) {
    const auto request = two_node_request();
    change(*request);
    return abi_view(*request).view().flags;
  };
  using Request = placement::PolicyRequest;
  EXPECT_EQ(flags_with([](Request&) {}), 0U);
  EXPECT_EQ(flags_with([](Request& of) { of.must_retain = true; }), 0U) << "it has nothing to keep";
  EXPECT_EQ(flags_with([](Request& of) {
              of.must_retain = true;
              of.keep = CpuSet{1};
            }),
            TOPOLET_REQUEST_MUST_KEEP);
  EXPECT_EQ(flags_with([](Request& of) { of.stay_near = NodeSet{1}; }), TOPOLET_REQUEST_STAYS);
  EXPECT_EQ(flags_with([](Request& of) { of.candidates_are_cut = true; }), TOPOLET_REQUEST_PARTIAL);
  EXPECT_EQ(flags_with([](Request& of) {
              for (std::uint32_t node = 2; node < 10; ++node)
                of.candidates.insert(of.candidates.begin(), {topology::DomainKind::kNode, true, NodeSet{node}, {}, 10});
            }),
            TOPOLET_REQUEST_PARTIAL)
      << "not every combination of more than eight nodes is a candidate";
  EXPECT_EQ(flags_with([](Request& of) { of.common_options.whole_cores = true; }), TOPOLET_REQUEST_WHOLE_CORES);
  EXPECT_EQ(flags_with([](Request& of) { of.kubelet_hands_out_cpusets = true; }), TOPOLET_REQUEST_KUBELET_CPUS);
  EXPECT_EQ(flags_with([](Request& of) { of.common_options.pod_scope = true; }), TOPOLET_REQUEST_POD_SCOPE);
  EXPECT_EQ(flags_with([](Request& of) { of.common_options.spread_cores = true; }), TOPOLET_REQUEST_SPREAD_CORES);
}

TEST(AbiRequest, ShowsWhatIsMeasured) {
  placement::PolicyRequest request = *two_node_request();
  const auto entry = [](const char* name) {
    placement::LedgerEntry shown;
    shown.key.name = name;
    shown.container_id = std::string("c-") + name;
    return shown;
  };
  request.ledger.entries.push_back(entry("a"));
  request.ledger.entries.push_back(entry("b"));
  EXPECT_EQ(abi_view(request).view().load, nullptr);
  request.load = std::make_shared<const load::Load>();
  EXPECT_EQ(abi_view(request).view().load, nullptr);
  load::Load measured;
  measured.containers["c-b"] = {1500, 20, std::chrono::milliseconds(700)};
  request.load = std::make_shared<const load::Load>(measured);
  {
    const AbiRequest view = abi_view(request);
    const topolet_load& shown = *view.view().load;
    EXPECT_EQ(shown.struct_size, sizeof(topolet_load));
    EXPECT_EQ(shown.nodes, nullptr);
    EXPECT_EQ(shown.pus, nullptr);
    const auto of = [&](std::size_t i) {
      return *TOPOLET_AT(topolet_entry_load, shown.entries, shown.entry_stride, i);
    };
    EXPECT_EQ(of(0).cpu_milli, -1);
    EXPECT_EQ(of(0).psi_some_permille, -1);
    EXPECT_EQ(of(1).cpu_milli, 1500);
    EXPECT_EQ(of(1).psi_some_permille, 20);
    EXPECT_EQ(of(1).age_ms, 700);
    EXPECT_EQ(shown.measured_ms, -1);
  }
  measured.measured_for = std::chrono::seconds(90);
  measured.nodes[1] = {3000, std::chrono::milliseconds(900), 700};
  request.load = std::make_shared<const load::Load>(measured);
  const AbiRequest view = abi_view(request);
  const topolet_load& shown = *view.view().load;
  const auto of = [&](std::size_t i) { return *TOPOLET_AT(topolet_node_load, shown.nodes, shown.node_stride, i); };
  EXPECT_EQ(of(0).effective_milli, -1);
  EXPECT_EQ(of(0).age_ms, -1);
  EXPECT_EQ(of(1).effective_milli, 3000);
  EXPECT_EQ(of(1).age_ms, 900);
  EXPECT_EQ(of(0).used_milli, -1);
  EXPECT_EQ(of(1).used_milli, 700);
  EXPECT_EQ(shown.measured_ms, 90000);
}

TEST(AbiRequest, TellsThePoolFromWhatTheContainerMayBeGiven) {
  placement::PolicyRequest request = *two_node_request();
  request.ledger.reserved = CpuSet{0};
  request.ledger.exclusive = CpuSet{5};
  request.ledger.pool = CpuSet{1, 2, 3, 6, 7};
  const auto shown = [&request] {
    const AbiRequest view = abi_view(request);
    const topolet_candidate& machine = sdk::candidates(view.view())[2];
    return list(machine.pool) + " and " + list(machine.usable);
  };
  EXPECT_EQ(shown(), "1-3,6-7 and 1-3,6-7");
  request.ledger.barred = CpuSet{2};
  EXPECT_EQ(shown(), "1-3,6-7 and 1,3,6-7") << "nobody is given it alone";
  request.keep = CpuSet{1, 3};
  EXPECT_EQ(shown(), "1-3,6-7 and 1,3") << "it does not grow";
  request.share(placement::NotExclusive::kOnlyAtCreation);
  EXPECT_EQ(shown(), "1-3,6-7 and 1-3,6-7");
  request.shared_mode = placement::Mode::kReserved;
  EXPECT_EQ(shown(), "0-3,6-7 and 0-3,6-7") << "the reserved CPU is open to it";
  request.keep = CpuSet{1, 2};
  EXPECT_EQ(shown(), "0-3,6-7 and 1-2") << "it keeps what it has";
}

/// Describes a ledger as plugins see it, without its addresses.
std::string described(const topolet_ledger& ledger) {
  std::string all = std::to_string(ledger.generation) + list(ledger.pool) + "\n";
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    all += std::string(text(entry.pod_uid)) + " " + std::to_string(entry.mode) + " " + list(entry.cpus) + " " +
           std::to_string(entry.demand->cpu_request_milli) + " " + std::string(text(entry.pod_name));
    for (const auto& [key, value] : map_of(entry.pod_labels)) all += " " + key + "=" + value;
    for (const auto& [key, value] : map_of(entry.annotations)) all += " " + key + "=" + value;
    all += "\n";
  }
  for (const topolet_node_demand& node : sdk::node_demands(ledger)) {
    all += std::to_string(node.containers) + " " + std::to_string(node.exclusive_cpus) + " " +
           std::to_string(node.cpu_request_milli) + " " + std::to_string(node.memory_request_bytes) + "\n";
  }
  return all;
}

placement::LedgerEntry random_entry(std::mt19937& random, std::uint32_t number) {
  placement::LedgerEntry entry;
  entry.key = {"uid-" + std::to_string(number), "main", 0, "sandbox"};
  entry.pod_name = "pod-" + std::to_string(number % 5);
  entry.pod_labels = {{"app", entry.pod_name}, {"role", random() % 2 == 0 ? "web" : "db"}};
  entry.annotations = {{"app", std::to_string(random() % 3)}};
  entry.placement.mode = random() % 2 == 0 ? placement::Mode::kShared : placement::Mode::kExclusive;
  const auto first = static_cast<std::uint32_t>(random() % 8);
  entry.placement.cpus = CpuSet::range(first, first + static_cast<std::uint32_t>(random() % (8 - first)));
  entry.demand.cpu_request_milli = static_cast<std::int64_t>(random() % 4000);
  entry.demand.memory_request_bytes = static_cast<std::int64_t>(random() % 4096);
  return entry;
}

TEST(AbiLedger, ShowsTheSameAfterChangesAsOneThatIsMadeAnew) {
  const AbiTopology topology(two_node_request()->topology);
  std::mt19937 random(7);
  std::map<std::uint32_t, placement::LedgerEntries::Shared> containers;
  placement::LedgerSnapshot ledger;
  AbiLedger updated(ledger, topology);
  for (int i = 0; i < 2000; ++i) {
    // Few changes, and now and then many.
    for (std::size_t changes = random() % 50 == 0 ? 60 : random() % 3; changes > 0; --changes) {
      const auto number = static_cast<std::uint32_t>(random() % 40);
      if (random() % 3 == 0) {
        containers.erase(number);
      } else {
        containers[number] = std::make_shared<const placement::LedgerEntry>(random_entry(random, number));
      }
    }
    ledger.generation += random() % 2;
    ledger.pool = CpuSet::range(0, static_cast<std::uint32_t>(random() % 8));
    ledger.entries = {};
    // By number, which is not the order of the keys: in that order it is found sooner what has changed, no more.
    for (const auto& [number, entry] : containers) ledger.entries.push_back(entry);
    updated.update(ledger);
    ASSERT_EQ(described(updated.view()), described(AbiLedger(ledger, topology).view())) << "after change " << i;
    ASSERT_EQ(updated.check(), LentState::kIntact);
  }
}

}  // namespace
}  // namespace topolet::plugin
