// Notices when CPUs go off- and online, or when pods may run on others.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/machine/machine.hpp"
#include "core/topology/kernel_state.hpp"

namespace topolet::machine {

/// Polls on a thread of its own, since the kernel sends no notification. A change that is undone between two polls is
/// missed.
class MachineWatch {
 public:
  struct Options {
    std::filesystem::path sysfs_root = "/sys";
    std::filesystem::path cgroup_root = "/sys/fs/cgroup";
    std::chrono::milliseconds interval{1000};
    config::PlacementOptions placement;
  };
  using OnChange = std::function<void(engine::Engine::Machine)>;

  /// Polls for the first time. Read the topology only after this, so that no change is missed.
  MachineWatch(Options options, Log& log);
  ~MachineWatch() { stop(); }
  MachineWatch(const MachineWatch&) = delete;
  MachineWatch& operator=(const MachineWatch&) = delete;

  /// `topology`: as it was read. `on_change` is called on the thread of the watch.
  void start(std::shared_ptr<const topology::Topology> topology, OnChange on_change) TOPOLET_EXCLUDES(mutex_);
  /// No call is running when this returns, and none comes after it.
  void stop() TOPOLET_EXCLUDES(mutex_);

 private:
  /// What the machine is made from: poll() looks for changes of it.
  struct MachineState {
    std::optional<CpuSet> online;
    CpuSet isolated;
    std::optional<CpuSet> pods;

    friend bool operator==(const MachineState&, const MachineState&) = default;
  };
  Result<MachineState> poll() const;
  Result<engine::Engine::Machine> read(const MachineState& state);
  void check_for_change(const OnChange& on_change);
  bool wait() TOPOLET_EXCLUDES(mutex_);

  const Options options_;
  Log& log_;
  std::optional<MachineState> last_state_;
  std::string last_error_;  ///< said once
  std::shared_ptr<const topology::Topology> topology_;
  Mutex mutex_;
  CondVar wake_up_;
  bool stop_requested_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace topolet::machine
