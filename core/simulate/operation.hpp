// One line of a workload file: something that happens to the machine, to a pod or to a container.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/simulate/runtime_connection.hpp"
#include "core/simulate/simulated_runtime.hpp"

namespace topolet::simulate {

/// The resources that a pod or container asks for: as its spec says it, or as the CRI carries it, which comes before
/// the other.
struct Resources {
  std::optional<std::int64_t> cpu_request_milli;
  std::optional<std::int64_t> cpu_limit_milli;
  std::optional<std::int64_t> memory_request;  ///< bytes, as all that follow
  std::optional<std::int64_t> memory_limit;
  std::map<std::string, std::int64_t> hugepages;  ///< by page size as the CRI writes it, such as "2MB"

  std::optional<std::int64_t> cpu_shares;
  std::optional<std::int64_t> cpu_quota;   ///< µs
  std::optional<std::int64_t> cpu_period;  ///< µs
  std::optional<std::int64_t> oom_score_adj;
  std::optional<std::int64_t> memory_limit_in_bytes;
};

enum class OperationKind : std::uint8_t {
  kOccupy,
  kVacate,
  kRunPod,
  kCreate,
  kUpdate,
  kExit,
  kStop,
  kRemovePod,
  kOffline,
  kOnline,
  kDevice,
  kClock,
  kRuntime,
  kRestart,
  kCapacity,
  kCpuset,
  kStart,
  kSandbox,
  kStuck,
  kHeal,
  kLoad,
  kRelease,
};

/// The call whose answer `runtime` sets.
enum class FaultedCall : std::uint8_t { kCreate, kOwnUpdate };

std::string_view to_string(OperationKind kind);  // "occupy", "run_pod", …

/// Only the fields of its kind mean anything.
struct Operation {
  OperationKind kind = OperationKind::kClock;
  std::string pod;  ///< uid
  std::string container;

  CpuSet cpus;           ///< occupy, vacate, offline, online, cpuset
  bool again = false;    ///< cpuset
  bool ends = false;     ///< stuck
  bool is_dry = false;   ///< heal
  bool cpusets = false;  ///< release

  std::string name;  ///< run_pod: the pod's; its uid where the line does not say
  std::string pod_namespace = "default";
  std::string qos;  ///< empty: told from the resources
  std::string runtime_handler;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::optional<std::uint32_t> attempt;
  bool has_resources = false;  ///< run_pod
  Resources resources;

  std::optional<std::string> cgroup_parent;
  std::vector<std::string> devices;  ///< host paths
  std::vector<std::string> cdi_devices;
  std::vector<std::pair<std::string, std::string>> env;
  std::string cpuset_cpus;
  std::string cpuset_mems;

  bool starts = true;    ///< create
  bool is_init = false;  ///< create: an init container
  SandboxState sandbox = SandboxState::kReady;

  std::int32_t exit_code = 0;

  std::string path;  ///< device
  std::string device_kind;
  std::string pci;
  NodeSet nodes;

  std::optional<std::int64_t> cpu_milli;  ///< load: of a container, as the next
  std::optional<std::uint32_t> psi_some_permille;
  bool is_throttled = false;  ///< by its own quota
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::uint32_t> memory_psi_permille;
  std::optional<std::uint32_t> io_psi_permille;
  std::optional<std::uint32_t> cpu;  ///< load: whose values the next two are; none: of a node
  std::optional<std::int64_t> effective_milli;
  std::optional<std::int64_t> used_milli;
  std::optional<std::chrono::milliseconds> measured_for;  ///< load: how long there have been measurements
  bool known = true;                                      ///< load: false: it is not measured any more
  std::chrono::milliseconds age{};                        ///< load: of each value that is shown

  std::uint32_t node = 0;             ///< capacity, load
  std::optional<std::int64_t> milli;  ///< none: nominal again
  std::chrono::milliseconds lasts{0};
  std::string source = "operator";

  std::chrono::milliseconds advance{0};
  std::chrono::milliseconds wall_jump{0};
  std::optional<NextResponse> next;  ///< runtime
  std::optional<RuntimeTells> tells;
  FaultedCall answer_to = FaultedCall::kCreate;

  std::optional<KillPoint::At> kill_at;  ///< restart: none is at once
  std::uint32_t calls = 1;
  bool repeat = true;
  bool loses_database = false;
  CpuSet gone_cpus = {};     ///< restart: those that go offline while no daemon runs
  CpuSet arrived_cpus = {};  ///< restart: those that come back
};

/// The fields that a line may have, by its "op".
struct OperationFields {
  std::string op;
  std::vector<std::string> required;
  std::vector<std::string> optional;
};
std::vector<OperationFields> operation_fields();

/// INVALID_ARGUMENT says what is wrong with the line and what would be right.
Result<Operation> parse_operation(const std::string& line);

}  // namespace topolet::simulate
