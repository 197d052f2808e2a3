#include "core/engine/converge/releaser.hpp"

#include <chrono>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::seconds kReleasePatience{10};

}  // namespace

std::string_view to_string(Released released) {
  switch (released) {
    case Released::kNothing:
      return "";
    case Released::kLimits:
      return "limits";
    case Released::kCpusets:
      return "cpusets";
  }
  return "?";
}

/// Those that are still to be told what they have.
struct Releaser::Wait {
  std::size_t open = 1;  ///< also until all are asked for
  ReleaseReport report;
  OnReleased then;

  void end_one() {
    if (--open == 0) then(std::move(report));
  }
};

void Releaser::release(bool cpusets, OnReleased then) {
  const auto before = told();
  stop_deciding(cpusets);
  const std::string reason = cpusets ? "released by the operator: it runs on all CPUs of the pool"
                                     : "released by the operator: nothing is kept from it but CPUs that others have";
  deps_.committer.commit(event::Released{cpusets, reason},
                         [this, before, then = std::move(then)] { await_all(before, then); });
}

void Releaser::stop_deciding(bool cpusets) {
  if (cpusets) {
    released_ = Released::kCpusets;
    deps_.placed_handlers.stop_placing("topolet has given everybody all CPUs (topolet release --cpusets)");
    deps_.home_relief.end();
    deps_.rebalancer.end();
    deps_.confiner.end();
  } else if (released_ == Released::kNothing) {
    released_ = Released::kLimits;
  }
  deps_.besteffort_relief.end();
  deps_.log.warn("released: {} until topoletd starts again",
                 cpusets ? "everybody runs on all CPUs of the pool, and nobody is placed"
                         : "BestEffort containers give way to nobody");
}

std::map<placement::ContainerKey, ContainerCpuset> Releaser::told() const {
  std::map<placement::ContainerKey, ContainerCpuset> sets;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (allocation.is_managed()) sets.emplace(key, desired_cpuset_of(allocation));
  }
  return sets;
}

void Releaser::await_all(const std::map<placement::ContainerKey, ContainerCpuset>& before, const OnReleased& then) {
  const auto wait = std::make_shared<Wait>();
  wait->then = then;
  for (const auto& [key, set] : told()) {
    const auto had = before.find(key);
    if (had != before.end() && had->second != set) ++wait->report.released;
    const Allocation& allocation = *deps_.committer.ledger().find(key);
    ++wait->open;
    deps_.mover.when_converged(allocation.container_id, kReleasePatience,
                               [wait, name = display_name(allocation.workload)](const Status& status) {
                                 if (!status) wait->report.untold.push_back({name, status.error().message});
                                 wait->end_one();
                               });
  }
  wait->end_one();
}

}  // namespace topolet::engine
