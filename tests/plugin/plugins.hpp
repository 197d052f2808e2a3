// Helpers of this folder's tests that need plugins.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/host/load.hpp"

namespace topolet::plugin {

using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// A started plugin of `dir`; null, with a failure, if it cannot be.
inline std::shared_ptr<PluginPolicy> start_plugin(const std::string& dir, const std::string& name,
                                                  const OptionValues& values = {}) {
  const auto library = PluginLibrary::load(dir, name);
  if (!library) {
    ADD_FAILURE() << library.error().message;
    return nullptr;
  }
  auto policy = library->create(values, make_silent_log());
  if (!policy) ADD_FAILURE() << policy.error().message;
  return policy ? *policy : nullptr;
}

/// A request as plugins see it. Borrows the request.
inline AbiRequest abi_view(const placement::PolicyRequest& request) {
  return AbiRequest(request, std::make_shared<const AbiTopology>(request.topology));
}

/// Two nodes of two cores with two threads each, all free; two CPUs of its own are asked for.
inline std::shared_ptr<placement::PolicyRequest> two_node_request() {
  topology::Topology machine;
  for (std::uint32_t cpu = 0; cpu < 8; ++cpu) {
    machine.pus.push_back({cpu, cpu / 2, topology::kNoPosition, topology::kNoPosition, cpu / 4, 0});
  }
  machine.cores = {CpuSet{0, 1}, CpuSet{2, 3}, CpuSet{4, 5}, CpuSet{6, 7}};
  machine.packages = {CpuSet::range(0, 7)};
  machine.nodes.resize(2);
  machine.nodes[0].cpus = CpuSet::range(0, 3);
  machine.nodes[0].subtype = "DRAM";
  machine.nodes[0].memory_bytes = 1 << 30;
  machine.nodes[0].huge_pages = {{2 << 20, 5}};
  machine.nodes[1].os_index = 1;
  machine.nodes[1].cpus = CpuSet::range(4, 7);
  machine.domains = {{topology::DomainKind::kNode, CpuSet::range(0, 3), NodeSet{0}},
                     {topology::DomainKind::kNode, CpuSet::range(4, 7), NodeSet{1}},
                     {topology::DomainKind::kPackage, CpuSet::range(0, 7), NodeSet{0, 1}}};
  machine.distances = {10, 21, 21, 10};
  machine.distances_known = true;
  machine.online = machine.allowed = CpuSet::range(0, 7);
  machine.generation = 3;

  auto request = std::make_shared<placement::PolicyRequest>();
  request->topology = std::make_shared<const topology::Topology>(std::move(machine));
  request->ledger.allowed = request->ledger.pool = CpuSet::range(0, 7);
  request->workload.key = {"uid-1", "web", 2, "sandbox-1"};
  request->exclusive = true;
  request->exclusive_cpus = 2;
  request->candidates = {{topology::DomainKind::kNode, true, NodeSet{0}, CpuSet::range(0, 3), 10},
                         {topology::DomainKind::kNode, true, NodeSet{1}, CpuSet::range(4, 7), 10},
                         {topology::DomainKind::kPackage, true, NodeSet{0, 1}, CpuSet::range(0, 7), 62}};
  return request;
}

}  // namespace topolet::plugin
