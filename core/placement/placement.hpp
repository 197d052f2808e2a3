// The result of a decision. Plain values.
//
// The room core/placement, namespace topolet::placement: decides where one container goes, as a pure function of the
// machine, the ledger's contents, the operator's rules and the votes of the policies. Start at decide() in decide.hpp.
// It may include core/base and core/topology; it knows neither the CRI, the store and the engine, nor who implements a
// Policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/placement/linux_settings.hpp"

namespace topolet::placement {

enum class Mode : std::uint8_t {
  kExclusive,  ///< CPUs of its own
  kShared,     ///< in the pool, with all others
  kReserved,   ///< in the pool and on the reserved CPUs: reserved namespaces, and who has no other CPU left
  kForeign,    ///< seen but not placed
};

std::string_view to_string(Mode mode);  // "exclusive", "shared", "reserved", "foreign"

/// Returns true if a container's CPUs follow the pool: it shares them, and has more or fewer as others come and go.
constexpr bool follows_pool(Mode mode) { return mode == Mode::kShared || mode == Mode::kReserved; }
/// Returns true if nobody else may run on a container's CPUs. A foreign container is recorded with the CPUs that the
/// kubelet assigned to it exclusively, if any.
constexpr bool holds_exclusively(Mode mode) { return mode == Mode::kExclusive || mode == Mode::kForeign; }
/// Returns the CPUs for a container that follows the pool. `free_reserved`: the reserved CPUs that nobody holds alone.
CpuSet pool_for(Mode mode, const CpuSet& pool, const CpuSet& free_reserved);

/// By which containerd and CRI-O are told a container's class of Intel's Resource Director Technology.
inline constexpr const char* kRdtClassAnnotation = "io.kubernetes.cri.rdt-class";

/// Fields of a CreateContainer request that are added to it; what the pod sets itself stays.
struct AddedFields {
  std::vector<std::pair<std::string, std::string>> env;          ///< each name once
  std::vector<std::pair<std::string, std::string>> annotations;  ///< each key once
  /// For topolet itself: the tags of the container, by "POLICY/KEY", each once. Workload::tags has those that last.
  std::vector<std::pair<std::string, std::string>> tags = {};
  std::vector<std::pair<std::string, std::string>> unified = {};  ///< files of its cgroup v2, each once
  std::string rdt_class = {};                                     ///< empty: none
  std::optional<MemoryPolicy> memory_policy = {};
  std::optional<Scheduler> scheduler = {};
  std::optional<IoPriority> io_priority = {};

  friend bool operator==(const AddedFields&, const AddedFields&) = default;
};

struct Placement {
  Mode mode = Mode::kShared;
  CpuSet cpus;             ///< the CPUs to set
  CpuSet withheld;         ///< kept idle for the container
  NodeSet mems;            ///< memory nodes to set; empty = leave them alone
  AddedFields added = {};  ///< counts at the container's creation only; stored until then

  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace topolet::placement
