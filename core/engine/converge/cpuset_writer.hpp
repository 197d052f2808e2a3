// Telling the runtime where a container may run, and seeing that it is so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/cri/requests.hpp"
#include "core/cri/runtime_client.hpp"
#include "core/engine/converge/kernel.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// What came of telling the runtime.
struct Written {
  enum class Kind : std::uint8_t {
    kRuns,    ///< it runs, and the kernel has it where it should be
    kNotRun,  ///< the runtime says that it was not started yet
    kExited,
    kGone,    ///< the runtime has no such container
    kFailed,  ///< `error` says why
  };
  Kind kind = Kind::kFailed;
  Error error = {};
};

/// Lives and calls back on the loop's thread.
class CpusetWriter {
 public:
  struct Deps {
    Loop& loop;
    RuntimeClient& client;
    Kernel kernel;
    Log& log;
  };
  explicit CpusetWriter(Deps deps) : deps_(std::move(deps)) {}

  /// Updates the container and, if it runs, reads its cpuset back from the kernel.
  void write(const std::string& container_id, const CpusetTarget& target, std::function<void(Written)> done);

  /// Every container and, asked for after them so that each container's is there, every sandbox.
  void list(std::function<void(Result<std::vector<Sandbox>>, Result<std::vector<ContainerInfo>>)> done);

  /// Asks for a container's verbose status and remembers its process.
  void inspect(const std::string& container_id, std::function<void(Result<ContainerDetail>)> done);

  /// What the kernel says of a process that was seen to belong to the container; none if there is none to be asked.
  std::optional<CpuSet> kernel_cpus(const std::string& container_id) const;
  /// OK if the kernel does not contradict `target`.
  Status check(const std::string& container_id, const CpusetTarget& target) const;

  /// The kernel has it on fewer CPUs than `target`: perhaps because of a cgroup above it, perhaps because an update was
  /// lost.
  bool is_narrower(const std::string& container_id, const CpusetTarget& target) const;

  void forget(const std::string& container_id) { pids_.erase(container_id); }

 private:
  void written(const std::string& container_id, const CpusetTarget& target, const Status& status,
               const std::function<void(Written)>& done);
  Written compare(const std::string& container_id, const CpusetTarget& target) const;

  Deps deps_;
  std::unordered_map<std::string, std::int64_t> pids_;
};

}  // namespace topolet::engine
