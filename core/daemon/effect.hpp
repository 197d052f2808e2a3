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
#include "core/daemon/loop.hpp"
#include "core/placement/kernel.hpp"
#include "core/placement/lanes.hpp"

namespace topolet {

/// Lives and calls back on the loop's thread.
class Effect {
 public:
  struct Parts {
    Loop& loop;
    RuntimeClient& client;
    Kernel kernel;
    Log& log;
  };
  explicit Effect(Parts parts) : parts_(std::move(parts)) {}

  /// Called for a container that turns out to have exited.
  std::function<void(const std::string& container_id)> on_exited;

  /// Updates the container and, if it runs, reads its cpuset back from the kernel. OK: confirmed, or there is nothing
  /// left that could run (no such container, exited).
  void apply(const std::string& container_id, const CpusetTarget& target, std::function<void(Status)> done);

  /// Every container and, asked for after them so that each container's is there, every sandbox.
  void list(std::function<void(Result<std::vector<Sandbox>>, Result<std::vector<ContainerInfo>>)> done);

  /// Asks for a container's verbose status and remembers its process.
  void inspect(const std::string& container_id, std::function<void(Result<ContainerDetail>)> done);

  /// What the kernel says of a process that was seen to belong to the container; OK if nothing contradicts `target`.
  Status check(const std::string& container_id, const CpusetTarget& target) const;

  void forget(const std::string& container_id) { pids_.erase(container_id); }

 private:
  void applied(const std::string& container_id, const CpusetTarget& target, const Status& status,
               const std::function<void(Status)>& done);
  void find_out_why(const std::string& container_id, const Status& failed, std::function<void(Status)> done);

  Parts parts_;
  std::unordered_map<std::string, std::int64_t> pids_;
};

}  // namespace topolet
