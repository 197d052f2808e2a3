// The runtime handlers whose containers topolet places, and the obstacles of those whose containers it cannot place.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/allocation.hpp"
#include "core/placement/runtime_handlers.hpp"

namespace topolet::engine {

/// Returns true if the process of a container is seen in a cgroup of its pod, and not in one of the container's own:
/// its CPUs cannot be set then, as when a virtual machine or a sandbox process runs its contents. `cgroups`: their
/// paths, one for each hierarchy, which name the container that they belong to by the runtime's id. It has one of its
/// own if any of them does: cgroup v1 moves processes up whose last CPU goes offline. None says nothing.
bool runs_in_cgroup_of_pod(const std::vector<std::string>& cgroups, const std::string& container_id,
                           const placement::ContainerKey& key);

/// Lives on the loop's thread.
class PlacedHandlers {
 public:
  explicit PlacedHandlers(placement::RuntimeHandlers configured) : configured_(std::move(configured)) {}

  /// Returns why the handler's containers are not placed, for people; empty if they are.
  std::string obstacle(const std::string& handler) const;

  /// A container of it turned out to run in no cgroup of its own. None of the handler's is placed from now on; of the
  /// runtime's default one only when that was seen of two, as a container can be made to join another's cgroup.
  void note_without_cgroup(const std::string& handler, const std::string& container_id) {
    without_cgroups_[handler].insert(container_id);
  }

  /// No container is placed any more, whatever its handler. `why`: for people.
  void stop_placing(std::string why) { why_none_ = std::move(why); }
  /// Returns why none is placed, whatever its handler; empty if some are.
  const std::string& why_none() const { return why_none_; }

 private:
  bool has_no_cgroups(const std::string& handler) const;

  placement::RuntimeHandlers configured_;
  std::string why_none_;                                          ///< none is placed; empty: some are
  std::map<std::string, std::set<std::string>> without_cgroups_;  ///< the containers that were seen so, by handler
};

}  // namespace topolet::engine
