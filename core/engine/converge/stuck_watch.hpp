// Containers that do not leave CPUs, and stand in the way of others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/footprints.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Commits which containers are stuck (Allocation::stuck): those that another container has waited for in vain, and
/// whose runtime has refused three times to take CPUs from them, or has not answered in time. Not those that are
/// overruled: they are planned around for that. Also commits that one is not stuck any more, when it has left some of
/// the CPUs. The counts kept here are lost with the daemon; that only delays the next such finding. Lives on the loop's
/// thread.
class StuckWatch {
 public:
  struct Deps {
    Committer& committer;
    const CpusetWriter& cpusets;
    const Footprints& footprints;
    Clock clock;
  };
  explicit StuckWatch(Deps deps) : deps_(std::move(deps)) {}

  /// It is told that now.
  void note_told(const std::string& container_id, const ContainerCpuset& target);
  /// The runtime has failed to do that.
  void note_failed(const std::string& container_id, const ContainerCpuset& target, const Error& error);
  /// The runtime has taken it.
  void note_taken(const std::string& container_id);
  /// It has these CPUs and no others, as the kernel confirms.
  void note_is_on(const std::string& container_id, const CpuSet& cpus);

  /// The container of `key` has waited in vain for those that are on its CPUs: for as long as a create may take, or
  /// until one of them had failed.
  void note_waited_in_vain(const placement::ContainerKey& key, bool long_enough);

  /// The runtime refuses each update of it, for all that is known: it is where the kernel shows it.
  bool is_refused(const std::string& container_id) const;
  /// Returns the time to wait before it is told its CPUs again; none: as always.
  std::optional<std::chrono::milliseconds> wait_before_retry(const std::string& container_id) const;
  /// Returns the containers of which it is time to try whether they can be moved by now.
  std::vector<placement::ContainerKey> due() const;
  /// Returns the set that is tried: without half of the CPUs that it did not leave.
  static ContainerCpuset trial_of(const Allocation& allocation, const ContainerCpuset& agreed);
  void note_tried(const std::string& container_id, const ContainerCpuset& target, const WriteResult& result);

  void forget(const std::string& container_id) { attempts_.erase(container_id); }

 private:
  struct Attempt {
    ContainerCpuset target;
    std::chrono::steady_clock::time_point told_at{};
    bool is_under_way = false;
    std::uint32_t refusals = 0;  ///< in a row
    bool is_in_doubt = false;    ///< one of those in this row was not answered, and may come into effect yet
    Error error = {};
  };

  void commit_stuck(const Allocation& allocation, const CpuSet& target, const std::string& why);
  bool is_in_the_way_for_good(const Allocation& allocation, const Attempt& attempt, bool long_enough) const;

  Deps deps_;
  std::map<std::string, Attempt> attempts_;  ///< by container
};

}  // namespace topolet::engine
