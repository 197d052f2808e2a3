#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/operations/container.hpp"
#include "core/operations/container_cpuset.hpp"

namespace topolet::operations {

/// Asks a container runtime, and tells it where containers run, apart from any operation. Errors carry a gRPC code and
/// name the request and its container.
///
/// Any thread may call. Every `done` runs once, on a thread of the front's, and must not block.
class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;

  /// Leaves the memory nodes alone if `set.mems` is empty, the CFS quota if there is no `set.quota`, and all files of
  /// the cgroup that `set.unified` does not name.
  virtual void update(const std::string& container_id, const ContainerCpuset& set,
                      std::function<void(Status)> done) = 0;
  /// Lists all containers, unfiltered.
  virtual void list_containers(std::function<void(Result<std::vector<ContainerInfo>>)> done) = 0;
  virtual void list_sandboxes(std::function<void(Result<std::vector<Sandbox>>)> done) = 0;
  /// NOT_FOUND if the runtime has no such container.
  virtual void inspect(const std::string& container_id, std::function<void(Result<ContainerDetail>)> done) = 0;
};

}  // namespace topolet::operations
