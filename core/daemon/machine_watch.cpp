#include "core/daemon/machine_watch.hpp"

#include <utility>

#include "core/topology/discover.hpp"
#include "core/topology/kubepods.hpp"

namespace topolet {
namespace {

std::string text_of(const std::optional<CpuSet>& cpus) { return cpus ? cpus->to_string() : "all"; }

}  // namespace

MachineWatch::MachineWatch(Options options, Log& log) : options_(std::move(options)), log_(log) {
  if (Result<Seen> seen = look(); seen) seen_ = *std::move(seen);
}

void MachineWatch::start(std::shared_ptr<const Topology> topology, OnChange on_change) {
  topology_ = std::move(topology);
  thread_ = std::thread([this, on_change = std::move(on_change)] {
    while (wait()) compare(on_change);
  });
}

void MachineWatch::stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool MachineWatch::wait() {
  const auto until = std::chrono::steady_clock::now() + options_.interval;
  MutexLock lock(mutex_);
  while (!is_stopping_ && std::chrono::steady_clock::now() < until) stopping_.wait_until(mutex_, until);
  return !is_stopping_;
}

Result<MachineWatch::Seen> MachineWatch::look() const {
  Result<KernelState> state = read_kernel_state(options_.sysfs_root);
  if (!state) return state.error();
  Result<std::optional<CpuSet>> pods = kubepods_cpus(options_.cgroup_root);
  if (!pods) return pods.error();
  return Seen{std::move(state->online), std::move(state->isolated), *std::move(pods)};
}

Result<engine::Engine::Machine> MachineWatch::read(const Seen& seen) {
  // Where only pods may use others, it is the same topology: plugins would look at the machine anew for nothing.
  if (!seen_ || seen_->online != seen.online || seen_->isolated != seen.isolated) {
    Result<std::shared_ptr<const Topology>> found = discover({.sysfs_root = options_.sysfs_root});
    if (!found) return found.error();
    auto numbered = std::make_shared<Topology>(**found);
    numbered->generation = topology_->generation + 1;
    topology_ = std::move(numbered);
  }
  PlacementOptions placement = options_.placement;
  // A reserved CPU that goes offline is missing, and no mistake of the configuration any more.
  placement.reserved_cpus &= topology_->online;
  return make_machine(topology_, placement, seen.pods);
}

void MachineWatch::compare(const OnChange& on_change) {
  Result<Seen> seen = look();
  if (seen && seen_ == *seen) return;
  Result<engine::Engine::Machine> machine = seen ? read(*seen) : Result<engine::Engine::Machine>(seen.error());
  if (!machine) {
    if (std::exchange(last_error_, machine.error().message) == machine.error().message) return;
    return log_.error("the machine has changed, and containers stay as they are: {}", last_error_);
  }
  last_error_.clear();
  log_.info("CPUs online are {} now, pods may use {}: placing on {}", text_of(seen->online), text_of(seen->pods),
            machine->cpus.allowed.to_string());
  seen_ = *std::move(seen);
  on_change(*std::move(machine));
}

}  // namespace topolet
