// Pods and nodes as tests of the extender write them.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cluster/api/pod.hpp"
#include "cluster/extender/demand.hpp"
#include "cluster/extender/node_zones.hpp"

namespace topolet::extender {

using nlohmann::json;

struct ZoneSpec {
  int available = 0;
  int allocatable = 0;  ///< 0: as many
  std::string memory = "64Gi";
  std::vector<std::pair<std::string, int>> devices = {};
  std::string effective_milli = {};
  std::string pool = {};      ///< "3/8": available of how many, on a node that tells of isolated CPUs
  std::string isolated = {};  ///< the same of those
};

struct NodeSpec {
  std::string name = "n1";
  std::vector<ZoneSpec> zones = {};
  std::string policy = "none";
  std::string scope = "container";
  std::string acknowledged = {};
  std::uint64_t version = 0;
  std::vector<std::vector<int>> distances = {};
  std::vector<std::pair<std::string, std::string>> more = {};  ///< attributes
};

inline json topology_object(const NodeSpec& node) {
  const auto resource = [](const std::string& name, const std::string& available, const std::string& allocatable) {
    return json{{"name", name}, {"capacity", allocatable}, {"allocatable", allocatable}, {"available", available}};
  };
  json object = {{"apiVersion", "topology.node.k8s.io/v1alpha2"},
                 {"kind", "NodeResourceTopology"},
                 {"metadata", {{"name", node.name}}},
                 {"attributes",
                  {{{"name", "topologyManagerPolicy"}, {"value", node.policy}},
                   {{"name", "topologyManagerScope"}, {"value", node.scope}},
                   {{"name", "topolet.io/generation"}, {"value", "7"}},
                   {{"name", "topolet.io/acked"}, {"value", node.acknowledged}}}},
                 {"zones", json::array()}};
  for (const auto& [name, value] : node.more) object["attributes"].push_back({{"name", name}, {"value", value}});
  if (node.version != 0) object["metadata"]["resourceVersion"] = std::to_string(node.version);
  for (std::size_t i = 0; i < node.zones.size(); ++i) {
    const ZoneSpec& spec = node.zones[i];
    const int allocatable = spec.allocatable > 0 ? spec.allocatable : spec.available;
    json zone = {{"name", fmt::format("node-{}", i)}, {"type", "Node"}, {"resources", json::array()}};
    zone["resources"].push_back(resource("cpu", std::to_string(spec.available), std::to_string(allocatable)));
    if (!spec.memory.empty()) zone["resources"].push_back(resource("memory", spec.memory, "64Gi"));
    for (const auto& [name, count] : spec.devices)
      zone["resources"].push_back(resource(name, std::to_string(count), std::to_string(count)));
    if (!spec.effective_milli.empty())
      zone["attributes"] = {{{"name", "topolet.io/effective-cpu-milli"}, {"value", spec.effective_milli}}};
    if (!spec.pool.empty()) zone["attributes"].push_back({{"name", "topolet.io/pool-cpus"}, {"value", spec.pool}});
    if (!spec.isolated.empty())
      zone["attributes"].push_back({{"name", "topolet.io/isolated-cpus"}, {"value", spec.isolated}});
    if (!node.distances.empty()) {
      for (std::size_t to = 0; to < node.zones.size(); ++to)
        zone["costs"].push_back({{"name", fmt::format("node-{}", to)}, {"value", node.distances[i][to]}});
    }
    object["zones"].push_back(std::move(zone));
  }
  return object;
}

struct ContainerSpec {
  std::string name = "main";
  std::string cpu = "4";
  std::string memory = "1Gi";
  std::string kind = "main";  ///< main, sidecar, init
  std::vector<std::pair<std::string, int>> devices = {};
};

/// Guaranteed: what it requests is what it may use.
inline json pod_object(const std::string& name, const std::vector<ContainerSpec>& containers,
                       const json& annotations = json::object()) {
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"namespace", "default"}, {"name", name}, {"annotations", annotations}}},
              {"spec", {{"containers", json::array()}, {"initContainers", json::array()}}},
              {"status", {{"phase", "Pending"}, {"qosClass", "Guaranteed"}}}};
  for (const ContainerSpec& spec : containers) {
    json amounts = {{"cpu", spec.cpu}, {"memory", spec.memory}};
    for (const auto& [device, count] : spec.devices) amounts[device] = std::to_string(count);
    json container = {{"name", spec.name}, {"resources", {{"requests", amounts}, {"limits", amounts}}}};
    if (spec.kind == "sidecar") container["restartPolicy"] = "Always";
    pod["spec"][spec.kind == "main" ? "containers" : "initContainers"].push_back(std::move(container));
  }
  return pod;
}

}  // namespace topolet::extender
