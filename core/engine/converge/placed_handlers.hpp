// Whose containers topolet places, by runtime handler, and what is known of those whose containers it cannot place.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "core/engine/state/allocation.hpp"
#include "core/placement/runtime_handlers.hpp"

namespace topolet::engine {

/// Whether the process of a container is seen in a cgroup of its pod, and not in one of the container's own: its CPUs
/// cannot be set then, as where a virtual machine or a sandbox process runs what is in it. `cgroup`: its path, which
/// names the container that it belongs to by the runtime's id; empty if it is not known, which says nothing.
bool runs_in_cgroup_of_pod(const std::string& cgroup, const std::string& container_id,
                           const placement::ContainerKey& key);

/// Lives on the loop's thread.
class PlacedHandlers {
 public:
  explicit PlacedHandlers(placement::RuntimeHandlers configured) : configured_(std::move(configured)) {}

  /// Why the handler's containers are not placed, for people; empty if they are.
  std::string obstacle(const std::string& handler) const;

  /// A container of it turned out to run in no cgroup of its own: none of them is placed from now on.
  void note_without_cgroups(const std::string& handler) { without_cgroups_.insert(handler); }
  const std::set<std::string>& without_cgroups() const { return without_cgroups_; }

 private:
  placement::RuntimeHandlers configured_;
  std::set<std::string> without_cgroups_;
};

}  // namespace topolet::engine
