#include "core/machine/machine_watch.hpp"

#include <utility>

#include "core/machine/kubepods.hpp"
#include "core/topology/discover.hpp"

namespace topolet::machine {
namespace {

std::string text_of(const std::optional<CpuSet>& cpus) { return cpus ? cpus->to_string() : "all"; }

}  // namespace

MachineWatch::MachineWatch(Options options, Log& log) : options_(std::move(options)), log_(log) {
  if (Result<MachineState> state = poll(); state) last_state_ = *std::move(state);
}

void MachineWatch::start(std::shared_ptr<const topology::Topology> topology, OnChange on_change) {
  topology_ = std::move(topology);
  thread_ = std::thread([this, on_change = std::move(on_change)] {
    while (wait()) check_for_change(on_change);
  });
}

void MachineWatch::stop() {
  {
    MutexLock lock(mutex_);
    stop_requested_ = true;
  }
  wake_up_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool MachineWatch::wait() {
  const auto until = std::chrono::steady_clock::now() + options_.interval;
  MutexLock lock(mutex_);
  while (!stop_requested_ && std::chrono::steady_clock::now() < until) wake_up_.wait_until(mutex_, until);
  return !stop_requested_;
}

Result<MachineWatch::MachineState> MachineWatch::poll() const {
  Result<topology::KernelState> state = topology::read_kernel_state(options_.sysfs_root);
  if (!state) return state.error();
  Result<std::optional<CpuSet>> pods = kubepods_cpus(options_.cgroup_root);
  if (!pods) return pods.error();
  return MachineState{std::move(state->online), std::move(state->isolated), *std::move(pods)};
}

Result<engine::Engine::Machine> MachineWatch::read(const MachineState& state) {
  // If only the pods' CPUs have changed, the topology stays the same, so that plugins do not examine it again.
  if (!last_state_ || last_state_->online != state.online || last_state_->isolated != state.isolated) {
    Result<std::shared_ptr<const topology::Topology>> found = topology::discover({.sysfs_root = options_.sysfs_root});
    if (!found) return found.error();
    auto numbered = std::make_shared<topology::Topology>(**found);
    numbered->generation = topology_->generation + 1;
    topology_ = std::move(numbered);
  }
  config::PlacementOptions placement = options_.placement;
  // A reserved CPU that goes offline is missing, and no mistake of the configuration any more.
  placement.reserved_cpus &= topology_->online;
  return make_machine(topology_, placement, state.pods);
}

void MachineWatch::check_for_change(const OnChange& on_change) {
  Result<MachineState> state = poll();
  if (state && last_state_ == *state) return;
  Result<engine::Engine::Machine> machine = state ? read(*state) : Result<engine::Engine::Machine>(state.error());
  if (!machine) {
    if (std::exchange(last_error_, machine.error().message) == machine.error().message) return;
    return log_.error("the machine has changed, but containers stay as they are: {}", last_error_);
  }
  last_error_.clear();
  log_.info("online CPUs are now {}, pods may use {}; placing containers on {}", text_of(state->online),
            text_of(state->pods), machine->cpus.allowed.to_string());
  last_state_ = *std::move(state);
  on_change(*std::move(machine));
}

}  // namespace topolet::machine
