// A container runtime without containers: it only keeps records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/operations/demand.hpp"

namespace topolet::lens {
class CreateContainerRequest;
}

namespace topolet::simulate {

/// The runtime's answer to the next call of a kind.
enum class NextResponse : std::uint8_t {
  kSucceed,
  kRefuse,        ///< nothing is done
  kResponseLost,  ///< it is done, but the answer never arrives
};

/// The state of a pod's sandbox, changed without a call; its containers stay as they are.
enum class SandboxState : std::uint8_t { kReady, kNotReady, kGone };

/// The sources of information about a container that is found. Where the runtime tells its process, the kernel shows
/// where that runs, and the files of its cgroup can be read.
enum class RuntimeTells : std::uint8_t {
  kAll,           ///< the request of its create and the runtime spec, as containerd
  kSpec,          ///< the runtime spec, as CRI-O
  kProcess,       ///< its process, as cri-dockerd
  kProcessAlone,  ///< its process, and the kernel shows only where that runs
  kNothing,
};

/// The caller of a method.
enum class Caller : std::uint8_t { kKubelet, kDaemon };

/// Returns true if a call of this method changes a pod or a container; the others only ask.
bool changes_something(std::string_view method);

/// A container that runs, and where.
struct RunningContainer {
  std::string pod;  ///< uid
  std::string container;
  std::uint32_t attempt = 0;
  CpuSet cpus;  ///< as the kernel has it; empty: nobody has said where, so it may run on every CPU
  NodeSet mems;
  std::map<std::string, std::string> files;  ///< of its cgroup (version 2), that somebody has set
};

/// Answers at once, on the caller's thread. The kernel has each container where it was told to be, unless another hand
/// has set its CPUs.
class SimulatedRuntime {
 public:
  SimulatedRuntime();
  ~SimulatedRuntime();
  SimulatedRuntime(const SimulatedRuntime&) = delete;
  SimulatedRuntime& operator=(const SimulatedRuntime&) = delete;

  cri::RuntimeResponse answer(std::string_view method, const std::string& request, Caller caller);

  /// The answer to the next CreateContainer; later ones succeed.
  void set_next_create(NextResponse next) { next_create_ = next; }
  /// The answer to the next UpdateContainerResources that the daemon makes by itself.
  void set_next_own_update(NextResponse next) { next_own_update_ = next; }
  /// From now on, of all containers.
  void set_tells(RuntimeTells tells) { tells_ = tells; }
  void exit(const std::string& container_id, std::int32_t exit_code);

  void set_sandbox(const std::string& sandbox_id, SandboxState state);

  /// Another hand sets the container's CPUs in the kernel: now, or when it is started. `again`: after every update too,
  /// until the next word about this container. No CPUs: the hand has gone, and the container stays where it is.
  void set_cpuset(const std::string& pod, const std::string& container, const CpuSet& cpus, bool again);
  /// The container keeps all CPUs that it has: every update that would take some from it is refused, as where a cgroup
  /// that it has made has them too (cgroup v1). Or it does so no more.
  void set_stuck(const std::string& pod, const std::string& container, bool is_stuck);
  /// Returns the CPUs of a process as the kernel shows them; none if nothing has set them, or there is no such process.
  std::optional<CpuSet> kernel_cpus(std::int64_t pid) const;
  /// Returns its resources as the kernel says them: its cgroup's path, and the files there, as of cgroup v1.
  operations::ToldResources kernel_resources(std::int64_t pid) const;

  /// Returns the id that the container of the request is to have; empty where it was made before, and not started: then
  /// a create returns that one.
  std::string next_container_id(const lens::CreateContainerRequest& request) const;
  bool has_container(const std::string& container_id) const;
  /// None unless it has ended.
  std::optional<std::int32_t> exit_code_of(const std::string& container_id) const;
  std::vector<std::string> containers_in(const std::string& sandbox_id) const;
  /// Empty for the default one, and where there is no such sandbox.
  std::string runtime_handler_of(const std::string& sandbox_id) const;

  std::vector<RunningContainer> running() const;
  /// Called after each call that was done and changed something, before its answer goes back.
  void watch(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  struct Container;
  struct Hand;
  struct Records;

  cri::RuntimeResponse do_call(std::string_view method, const std::string& request, Caller caller);
  cri::RuntimeResponse run_pod(const std::string& request);
  cri::RuntimeResponse create(const std::string& request);
  std::string find_unstarted(const lens::CreateContainerRequest& request) const;
  cri::RuntimeResponse update(const std::string& request, Caller caller);
  cri::RuntimeResponse status(const std::string& request) const;
  cri::RuntimeResponse start(const std::string& request);
  cri::RuntimeResponse stop(const std::string& request);
  std::string verbose_info(const Container& container) const;
  const Container* find_running(std::int64_t pid) const;
  cri::RuntimeResponse remove(const std::string& request);
  cri::RuntimeResponse stop_pod(const std::string& request);
  cri::RuntimeResponse remove_pod(const std::string& request);
  std::pair<std::string, std::string> name_of(const Container& container) const;
  void follow_update(Container& container);
  bool would_leave_stuck_cpus(const Container& container, const CpuSet& cpus) const;

  const std::unique_ptr<Records> records_;
  std::uint64_t last_number_ = 0;
  RuntimeTells tells_ = RuntimeTells::kAll;
  NextResponse next_create_ = NextResponse::kSucceed;
  NextResponse next_own_update_ = NextResponse::kSucceed;
  std::function<void()> changed_;
};

}  // namespace topolet::simulate
