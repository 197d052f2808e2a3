// The NodeResourceTopology object of this node.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/watch/watch.pb.h"

namespace topolet::agent {

inline constexpr const char* kTopologyApi = "topology.node.k8s.io/v1alpha2";
inline constexpr const char* kTopologyPath = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

/// Devices of one kind on one NUMA node.
struct DeviceCount {
  std::int64_t allocatable = 0;
  std::int64_t used = 0;

  friend bool operator==(const DeviceCount&, const DeviceCount&) = default;
};
/// By resource, "vendor.com/gpu", and then by OS index of the node.
using DeviceCounts = std::map<std::string, std::map<std::uint32_t, DeviceCount>>;

struct TopologyFacts {
  std::string node_name;
  std::string node_uid;                                 ///< of the Node object; empty: not known
  const watch::v1::Snapshot& node;                      ///< its containers are not read
  const watch::v1::FitsResponse& fits;                  ///< with the pending containers placed
  const DeviceCounts& devices;                          ///< what is bound and not given out yet is told as pending
  std::map<std::string, std::int64_t> pending_devices;  ///< by resource; on which nodes they will be is not known
  std::int64_t pending_cpus = 0;                        ///< that the kubelet will give out, where it does; the same
  std::string fingerprint;
  std::string acknowledged;
};

/// Makes a zone for each NUMA node that has something to offer. Memory is the amount that containers may have: without
/// reserved memory and huge pages, and without memory that topoletd binds no container to, or that of GPUs. Memory that
/// the CPUs of a node without memory use on a neighbour counts on that neighbour. A device that is local to several
/// nodes counts on each of them.
nlohmann::json make_topology_object(const TopologyFacts& facts);

/// `ours` with what others have written into `current`: attributes that are not ours, of the object and of its zones,
/// zones of other types, and the metadata. `current` may be null.
nlohmann::json with_what_others_wrote(nlohmann::json ours, const nlohmann::json& current);

/// Returns true if two objects differ at most in the generation, the touch, the heartbeat and the fields of others.
bool tell_the_same(const nlohmann::json& a, const nlohmann::json& b);

/// Returns true if some resource of a zone has more available in `now` than in `before`.
bool has_grown(const nlohmann::json& before, const nlohmann::json& now);

/// Sets the time of the second touch, which makes an object differ that says the same.
void touch(nlohmann::json& object, const std::string& time);

/// Sets the text that changes with each write. Readers need not know the time of this host.
void set_heartbeat(nlohmann::json& object, const std::string& time);

/// Returns the bytes that `numa.reserved-memory` keeps for the system on a node: "1Gi" on every node, or
/// "0:1Gi,1:512Mi".
std::int64_t reserved_memory_of(const std::string& option, std::uint32_t os_index);

}  // namespace topolet::agent
