// The engine at one moment, for whoever reports how it is. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/converge/overlap.hpp"
#include "core/engine/converge/release_report.hpp"
#include "core/engine/state/reported_capacity.hpp"

namespace topolet::engine {

/// A reported capacity with what it is compared to.
struct NodeCapacity {
  ReportedCapacity told;
  std::int64_t nominal_milli = 0;
};

/// A container whose CPUs another hand than topolet's sets.
struct OverruledContainer {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;            ///< that it should have
  CpuSet seen_on;         ///< where the kernel has it instead; empty: where it should be, at the moment
  std::chrono::milliseconds lasts{};
  std::string plugin = {};  ///< of the runtime, that does it; empty: it is not known who does
};

/// A container that does not leave CPUs.
struct StuckContainer {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;            ///< that nobody else is given alone for that
  std::string why;        ///< the runtime's words
  std::chrono::milliseconds lasts{};
};

/// A container that CPUs are missing for.
struct SqueezedContainer {
  std::string container;        ///< as display_name() says it
  CpuSet cpus;                  ///< that it has instead
  bool left_to_kernel = false;  ///< none of these may be used: it runs where the kernel lets it
};

/// A container that may not run, or not move to its CPUs, before others have left these.
struct WaitingContainer {
  std::string container;              ///< as display_name() says it
  std::string waits_for;              ///< one of the others, the same way
  CpuSet cpus;                        ///< on which that one may still run
  bool runs = false;                  ///< elsewhere, meanwhile
  std::chrono::milliseconds since{};  ///< wall clock: of its phase
};

/// A container, and CPUs that something is the matter with.
struct ContainerOnCpus {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;
};

/// A container of which nobody can tell whether the runtime has it.
struct DoubtfulContainer {
  std::string container;              ///< as display_name() says it
  std::chrono::milliseconds since{};  ///< wall clock
};

/// Containers of a runtime handler that topolet does not place.
struct ForeignContainers {
  std::uint32_t containers = 0;
  std::string obstacle;  ///< why they are not placed
};

/// The engine at one moment.
struct EngineSummary {
  std::map<std::string, std::uint32_t> containers;  ///< by seen_mode()
  std::uint32_t squeezed = 0;                       ///< those that do not have the CPUs they should, as CPUs are gone
  std::uint32_t left_to_kernel = 0;                 ///< those of them without any CPU
  std::uint64_t generation = 0;
  CpuSet allowed;
  CpuSet pool;
  CpuSet reserved;
  CpuSet exclusive;
  CpuSet withheld;
  bool reconciled = false;      ///< with the runtime, since the start
  bool store_degraded = false;  ///< writes wait for a database that takes none
  std::string store_degraded_because = {};
  std::map<std::string, ForeignContainers> foreign = {};  ///< by runtime handler
  std::vector<NodeCapacity> capacities = {};              ///< of the nodes that something is told of, by OS index
  std::vector<Overlap> overlaps = {};                     ///< containers on CPUs that another one has alone
  bool confines_foreign = false;                          ///< their pods are kept within the shared pool
  std::map<std::string, std::string> unconfined = {};     ///< why that cannot be done, by NAMESPACE/POD
  std::map<std::string, std::string> kept_quotas = {};    ///< why a pod's CFS quota stays, by NAMESPACE/POD
  std::vector<OverruledContainer> overruled = {};
  std::vector<StuckContainer> stuck = {};
  std::string store_reopened_because = {};  ///< when and why the database was begun anew; empty if it never was
  Released released = Released::kNothing;
  std::string files_refused_because = {};  ///< why memory.high is set for nobody; empty if the runtime takes it
  std::vector<SqueezedContainer> squeezed_containers = {};
  std::vector<WaitingContainer> waiting = {};
  std::vector<ContainerOnCpus> drifted = {};  ///< seen on these CPUs, where they should not be; not the overruled ones
  std::vector<ContainerOnCpus> conflicts = {};  ///< with the kubelet's CPUs, which overlap those of others
  std::vector<DoubtfulContainer> in_doubt = {};
};

}  // namespace topolet::engine
