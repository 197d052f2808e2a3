// Notices when CPUs go off- and online, or when pods may run on others.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "core/base/log_fwd.hpp"
#include "core/base/unique_fd.hpp"
#include "core/machine/machine.hpp"
#include "core/machine/uevent_socket.hpp"
#include "core/topology/kernel_state.hpp"

namespace topolet::machine {

/// On a thread of its own, which the kernel's uevents wake. It also checks now and then, as nothing tells of the pods'
/// cgroup.
class MachineWatch {
 public:
  struct Options {
    std::filesystem::path sysfs_root = "/sys";
    std::filesystem::path cgroup_root = "/sys/fs/cgroup";
    std::chrono::milliseconds interval{5000};
    bool hear_uevents = true;
    config::PlacementOptions placement;
  };
  struct Callbacks {
    std::function<void(engine::Engine::Machine)> on_change;
    /// CPUs were offline and are back before anybody has checked: the kernel may have changed cgroups meanwhile.
    std::function<void()> on_flicker = [] {};
  };

  /// Checks for the first time. Read the topology only after this, so that no change is missed.
  MachineWatch(Options options, Log& log);
  ~MachineWatch() { stop(); }
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  /// `topology`: as it was read. The callbacks are called on the thread of the watch.
  void start(std::shared_ptr<const topology::Topology> topology, Callbacks callbacks);
  /// No call is running when this returns, and none comes after it.
  void stop();

 private:
  /// The state that the machine is made from; its changes are reported.
  struct MachineState {
    std::optional<CpuSet> online;
    CpuSet present;
    CpuSet isolated;
    std::optional<CpuSet> pods;

    friend bool operator==(const MachineState&, const MachineState&) = default;
  };
  /// The reason why the thread woke.
  struct Wake {
    bool stop = false;
    UeventSocket::Heard heard = {};
  };

  Result<MachineState> read_state() const;
  Result<engine::Engine::Machine> read(const MachineState& state);
  void compare_with_topology();
  void check_for_change(const Callbacks& callbacks, const UeventSocket::Heard& heard);
  /// `flickered`: CPUs that were offline since the last check.
  void note_what_pods_lose(const MachineState& now, const CpuSet& flickered);
  bool give_back_to_pods(const MachineState& now);
  Wake wait();

  const Options options_;
  Log& log_;
  std::optional<UeventSocket> uevents_;
  std::optional<MachineState> last_state_;
  CpuSet lost_by_pods_;     ///< CPUs that pods could use when they went offline, and have not got back
  CpuSet taken_from_pods_;  ///< CPUs that pods could use a moment ago, and that were still online without them
  std::chrono::steady_clock::time_point taken_from_pods_at_;  ///< the last of these
  /// The number of checks since the last uevent: a change is not complete when its uevent comes.
  std::size_t checks_since_uevent_;
  int rereads_ = 0;                   ///< of the topology, since it last had the CPUs that the kernel says are online
  bool must_read_again_ = false;      ///< the topology, as it has other CPUs than the kernel
  std::string last_error_;            ///< said once
  std::string last_give_back_error_;  ///< the same
  std::shared_ptr<const topology::Topology> topology_;
  UniqueFd stop_request_;  ///< an eventfd
  std::thread thread_;
};

}  // namespace topolet::machine
