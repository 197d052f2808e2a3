// Telling the runtime where a container may run, and seeing that it is so.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/process_cgroups.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/events.hpp"
#include "core/operations/runtime.hpp"

namespace topolet::engine {

/// The result of telling the runtime.
struct WriteResult {
  enum class Kind : std::uint8_t {
    kVerified,    ///< it runs, and the kernel has it where it should be
    kNotStarted,  ///< the runtime says that it was not started yet
    kExited,
    kGone,       ///< the runtime has no such container
    kElsewhere,  ///< the runtime has taken it, and the kernel shows other CPUs; `error` says which
    kFailed,     ///< `error` says why
  };
  Kind kind = Kind::kFailed;
  Error error = {};
};

/// A runtime that has refused files of cgroups is not told any for so long.
constexpr std::chrono::hours kFilesRefusedFor{1};

/// Lives and calls back on the loop's thread.
class CpusetWriter {
 public:
  struct Deps {
    Loop& loop;
    operations::ContainerRuntime& runtime;
    const operations::DemandRules demand_rules;
    ProcessCgroups kernel;
    Log& log;
    Clock clock = {};
  };
  explicit CpusetWriter(Deps deps) : deps_(std::move(deps)) {}

  /// Updates the container and, if it runs, reads its cpuset back from the kernel. An update that the runtime refuses
  /// is tried without the files of its cgroup (ContainerCpuset::unified). If that succeeds, and the refusal names the
  /// files or the runtime refuses the same again with them, refuses_files() is true from then on. Where cgroups that
  /// the container has made below its own would keep it on its CPUs, they are made to leave these first.
  void write(const std::string& container_id, const ContainerCpuset& target, std::function<void(WriteResult)> done);

  /// The same by the kernel alone, at once, for a container whose cgroup can be seen: its CPUs, and not its memory
  /// nodes. The runtime is not told. An error if the kernel does not have it there afterwards.
  Status write_in_kernel(const std::string& container_id, const CpuSet& cpus);

  /// Every container and, asked for after them so that each container's is there, every sandbox.
  void list(
      std::function<void(Result<std::vector<operations::Sandbox>>, Result<std::vector<operations::ContainerInfo>>)>
          done);

  /// Asks for a container's verbose status and remembers its process. What the runtime does not tell of its resources
  /// is as the kernel has it.
  void inspect(const std::string& container_id, std::function<void(Result<operations::ContainerDetail>)> done);

  /// Returns the CPUs that the kernel shows for a process that was seen to belong to the container; none if there is no
  /// such process.
  std::optional<CpuSet> kernel_cpus(const std::string& container_id) const;
  /// Returns the CPUs of the container's own cgroup, as the kernel shows them; cgroups that the container has made
  /// below it may have fewer. If they cannot be told, the same as kernel_cpus().
  std::optional<CpuSet> container_cpus(const std::string& container_id) const;
  /// Returns the cpuset that somebody has set; see ProcessCgroups::configured_cpus().
  std::optional<CpuSet> configured_cpus(const std::string& container_id) const;
  /// The CPUs that cgroups below the container's own have, where it cannot leave them for that; see nested_cpusets.hpp.
  CpuSet pinned_by_nested(const std::string& container_id) const;
  /// Returns the cgroup of the container in the hierarchy that has cpusets; none if it cannot be told.
  std::optional<std::filesystem::path> cgroup_of(const std::string& container_id) const;
  bool has_v1_cpusets() const;
  /// Returns true for kFilesRefusedFor after the runtime has refused files of a container's cgroup. Updates have none
  /// meanwhile, and a memory.high of topolet's that is to be lifted is lifted in the kernel, where that can be seen.
  bool refuses_files() const { return refused_ && deps_.clock.steady() < refused_->until; }
  /// Returns what the runtime said; empty unless refuses_files().
  std::string why_files_are_refused() const { return refuses_files() ? refused_->why : std::string(); }
  /// Notes that topolet is about to have memory.high of the container set to so many bytes; see mark_memory_high().
  void mark_memory_high(const std::string& container_id, std::int64_t bytes) const;
  /// Returns the memory.high of the container, in bytes, if topolet has set it, in an earlier run, too; none otherwise.
  std::optional<std::int64_t> marked_memory_high(const std::string& container_id) const;
  /// Returns how much memory the container has on these nodes, in bytes; none if the kernel does not tell.
  std::optional<std::int64_t> memory_on(const std::string& container_id, const NodeSet& nodes) const;
  /// The paths of the cgroups of that process; none if there is none to be asked, or it is in no cgroup but the root.
  std::vector<std::string> cgroups_of(const std::string& container_id) const;
  /// True if the kernel is known to have it just there.
  bool is_where(const std::string& container_id, const ContainerCpuset& target) const;
  /// OK if the kernel does not contradict `target`.
  Status check_kernel(const std::string& container_id, const ContainerCpuset& target) const;

  /// The kernel has it on fewer CPUs than `target`: perhaps because of a cgroup above it, perhaps because an update was
  /// lost.
  bool is_narrower(const std::string& container_id, const ContainerCpuset& target) const;

  /// Somebody who knows says which process is the container's.
  void note_process(const std::string& container_id, std::int64_t pid) { pids_[container_id] = pid; }
  void forget(const std::string& container_id) { pids_.erase(container_id); }
  /// Returns a process that was seen to belong to the container; none if none was.
  std::optional<std::int64_t> process_of(const std::string& container_id) const;

 private:
  operations::ContainerDetail completed(operations::ContainerDetail detail) const;
  std::optional<std::filesystem::path> cgroup_with_nested(const std::string& container_id) const;
  void write_around_nested(const std::string& container_id, const ContainerCpuset& target,
                           const std::filesystem::path& cgroup, std::function<void(WriteResult)> done);
  void narrow_and_tell(const std::string& container_id, const ContainerCpuset& target,
                       const std::filesystem::path& cgroup, const CpuSet& before,
                       std::function<void(WriteResult)> done);
  void tell_runtime(const std::string& container_id, const ContainerCpuset& target, std::function<void(Status)> done);
  void tell_without_files(const std::string& container_id, const ContainerCpuset& target, const Error& refused,
                          std::function<void(Status)> done);
  void tell_files_again(const std::string& container_id, const ContainerCpuset& target,
                        std::function<void(Status)> done);
  void update(const std::string& container_id, const ContainerCpuset& target, std::function<void(Status)> done);
  void note_files_refused(const std::string& container_id, const ContainerCpuset& target, const Error& refused);
  void lift_in_kernel(const std::string& container_id, const ContainerCpuset& target) const;
  void written(const std::string& container_id, const ContainerCpuset& target, const Status& status,
               const std::function<void(WriteResult)>& done);
  WriteResult verify_written(const std::string& container_id, const ContainerCpuset& target) const;

  Deps deps_;
  std::unordered_map<std::string, std::int64_t> pids_;
  struct Refused {
    std::string why;
    std::chrono::steady_clock::time_point until;
  };
  std::optional<Refused> refused_;
};

}  // namespace topolet::engine
