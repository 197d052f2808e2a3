#include "core/machine/machine_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/machine/kubepods.hpp"
#include "core/topology/discover.hpp"

namespace topolet::machine {
namespace {

/// The times of further checks after a uevent. The kernel adapts cgroups a little later than it tells.
constexpr std::array kChecksAfterUevent{std::chrono::milliseconds(50), std::chrono::milliseconds(500)};
/// Where no uevents are heard.
constexpr std::chrono::milliseconds kIntervalWithoutUevents{1000};

/// A CPU that pods have lost is said to be offline by then, if that is why.
constexpr std::chrono::seconds kOfflineWithin{10};

/// The number of times that the topology is read again because it has other CPUs than the kernel reports. The
/// difference may be permanent, as hwloc sees some machines in another way.
constexpr int kMostRereads = 10;

std::string text_of(const std::optional<CpuSet>& cpus) { return cpus ? cpus->to_string() : "all"; }

}  // namespace

MachineWatch::MachineWatch(Options options, Log& log)
    : options_(std::move(options)),
      log_(log),
      checks_since_uevent_(kChecksAfterUevent.size()),
      stop_request_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options_.hear_uevents) {
    Result<UeventSocket> socket = UeventSocket::open();
    if (socket) {
      uevents_.emplace(*std::move(socket));
    } else {
      log_.warn("{}; CPUs that go off- or online are noticed a second later", socket.error().message);
    }
  }
  Result<MachineState> state = read_state();
  if (!state) return;
  // Pods that may use all that is online were not limited when the others went, before this began.
  if (state->online && state->pods == state->online) lost_by_pods_ = state->present - *state->online;
  last_state_ = *std::move(state);
}

void MachineWatch::start(std::shared_ptr<const topology::Topology> topology, Callbacks callbacks) {
  topology_ = std::move(topology);
  compare_with_topology();
  thread_ = std::thread([this, callbacks = std::move(callbacks)] {
    for (Wake wake = wait(); !wake.stop; wake = wait()) check_for_change(callbacks, wake.heard);
  });
}

void MachineWatch::stop() {
  ::eventfd_write(stop_request_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

MachineWatch::Wake MachineWatch::wait() {
  const bool hears = uevents_.has_value();
  std::chrono::milliseconds timeout =
      hears || !options_.hear_uevents ? options_.interval : std::min(options_.interval, kIntervalWithoutUevents);
  if (checks_since_uevent_ < kChecksAfterUevent.size()) {
    timeout = std::min(timeout, kChecksAfterUevent[checks_since_uevent_++]);
  }
  std::array<pollfd, 2> sources{{{stop_request_.get(), POLLIN, 0}, {hears ? uevents_->fd() : -1, POLLIN, 0}}};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Wake wake;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return wake;
    const auto most = std::min<std::int64_t>(left.count(), 3'600'000);
    static_cast<void>(::poll(sources.data(), sources.size(), static_cast<int>(most)));
    wake.stop = sources[0].revents != 0;
    if (wake.stop) return wake;
    if (sources[1].revents == 0) continue;
    wake.heard = uevents_->read();
    // Most are about other devices.
    if (wake.heard.cpus.empty() && !wake.heard.lost_some) continue;
    checks_since_uevent_ = 0;
    return wake;
  }
}

Result<MachineWatch::MachineState> MachineWatch::read_state() const {
  Result<topology::KernelState> state = topology::read_kernel_state(options_.sysfs_root);
  if (!state) return state.error();
  Result<std::optional<CpuSet>> pods = kubepods_cpus(options_.cgroup_root);
  if (!pods) return pods.error();
  return MachineState{std::move(state->online), std::move(state->present), std::move(state->isolated),
                      *std::move(pods)};
}

Result<engine::Engine::Machine> MachineWatch::read(const MachineState& state) {
  // If only the pods' CPUs have changed, the topology stays the same, so that plugins do not examine it again.
  if (must_read_again_ || !last_state_ || last_state_->online != state.online ||
      last_state_->isolated != state.isolated) {
    Result<std::shared_ptr<const topology::Topology>> found = topology::discover({.sysfs_root = options_.sysfs_root});
    if (!found) return found.error();
    auto numbered = std::make_shared<topology::Topology>(**found);
    numbered->generation = topology_->generation + 1;
    topology_ = std::move(numbered);
  }
  return make_machine(topology_, options_.placement, state.pods);
}

/// The kernel may take a CPU from pods some time before it says that the CPU is offline.
void MachineWatch::note_what_pods_lose(const MachineState& now, const CpuSet& flickered) {
  if (!last_state_ || !last_state_->online || !now.online || !last_state_->pods) return;
  const auto time = std::chrono::steady_clock::now();
  if (time - taken_from_pods_at_ > kOfflineWithin) taken_from_pods_ = {};
  const CpuSet gone = (*last_state_->online - *now.online) | flickered;
  lost_by_pods_ |= gone & (*last_state_->pods | taken_from_pods_);
  if (!now.pods) return;
  const CpuSet taken = (*last_state_->pods - *now.pods) & *now.online;
  if (taken.empty()) return;
  taken_from_pods_ |= taken;
  taken_from_pods_at_ = time;
}

/// cgroup v1 takes a CPU that goes offline out of every cgroup for good. True if pods have some again.
bool MachineWatch::give_back_to_pods(const MachineState& now) {
  if (!now.online) return false;
  const CpuSet back = lost_by_pods_ & *now.online;
  if (back.empty()) return false;
  const Status given = give_cpus_back_to_pods(options_.cgroup_root, back);
  if (given) {
    last_give_back_error_.clear();
  } else if (std::exchange(last_give_back_error_, given.error().message) != given.error().message) {
    log_.warn("{} online again, but pods cannot use {}: {}", named("CPU", back) + (back.size() == 1 ? " is" : " are"),
              back.size() == 1 ? "it" : "them", given.error().message);
  }
  return given.has_value();
}

/// A CPU may come or go while the topology is read: then it is read again at the next check.
void MachineWatch::compare_with_topology() {
  const bool is_as_known = !last_state_ || !last_state_->online || *last_state_->online == topology_->online;
  if (is_as_known) rereads_ = 0;
  must_read_again_ = !is_as_known && rereads_ < kMostRereads;
  if (!must_read_again_) return;
  ++rereads_;
  checks_since_uevent_ = 0;
}

void MachineWatch::check_for_change(const Callbacks& callbacks, const UeventSocket::Heard& heard) {
  Result<MachineState> state = read_state();
  if (state) {
    const CpuSet flickered = heard.lost_some && state->online ? *state->online : heard.cpus;
    note_what_pods_lose(*state, flickered);
    if (give_back_to_pods(*state)) {
      state = read_state();
      // One that went offline again while it was given back is still lost.
      if (state && state->online && state->pods) lost_by_pods_ -= *state->online & *state->pods;
    }
  }
  if (state && last_state_ == *state && !must_read_again_) {
    if (!heard.cpus.empty() || heard.lost_some) callbacks.on_flicker();
    return;
  }
  const CpuSet known = topology_->online;
  Result<engine::Engine::Machine> machine = state ? read(*state) : Result<engine::Engine::Machine>(state.error());
  if (!machine) {
    if (std::exchange(last_error_, machine.error().message) == machine.error().message) return;
    return log_.error("the machine has changed, but containers stay as they are: {}", last_error_);
  }
  last_error_.clear();
  const bool is_same = rereads_ > 0 && topology_->online == known && last_state_ && last_state_->pods == state->pods &&
                       last_state_->isolated == state->isolated;
  if (is_same) {
    last_state_ = *std::move(state);
    compare_with_topology();
    if (!heard.cpus.empty() || heard.lost_some) callbacks.on_flicker();
    return;
  }
  const CpuSet& allowed = machine->cpus.allowed;
  log_.info("online CPUs are now {}, pods may use {}; placing containers on {}", text_of(state->online),
            text_of(state->pods), allowed.empty() ? "none" : allowed.to_string());
  last_state_ = *std::move(state);
  compare_with_topology();
  callbacks.on_change(*std::move(machine));
}

}  // namespace topolet::machine
