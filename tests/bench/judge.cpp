#include "tests/bench/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace topolet::bench {
namespace {

constexpr std::size_t kReportedEvents = 40;

std::string describe(const ObservedContainer& container) {
  const std::string cpus = container.cpus.empty() ? "every CPU" : "CPUs " + container.cpus.to_string();
  return fmt::format("{} on {}{}", container.name, cpus, container.has_its_cpus_alone() ? ", alone" : "");
}

}  // namespace

bool ObservedContainer::shares_a_cpu_with(const ObservedContainer& other) const {
  return cpus.empty() || other.cpus.empty() || cpus.intersects(other.cpus);
}

void Judge::observe(std::string_view event, const ObservedContainer& container) {
  record(fmt::format("{}: {}", event, describe(container)));
  const bool begins = container.state == ObservedContainer::State::kRunning && !is_running(container.id);
  if (begins && container.has_its_cpus_alone()) ++alone_count_;
  compare(container);
  if (container.state == ObservedContainer::State::kRemoved) {
    containers_.erase(container.id);
  } else {
    containers_[container.id] = container;
  }
}

bool Judge::is_running(const std::string& id) const {
  const auto known = containers_.find(id);
  return known != containers_.end() && known->second.state == ObservedContainer::State::kRunning;
}

void Judge::note(const std::string& container_id, std::string_view event) {
  const auto known = containers_.find(container_id);
  record(fmt::format("{}: {}", event, known == containers_.end() ? container_id : known->second.name));
}

/// Only pairs of the container that has changed can have begun or ceased to overlap.
void Judge::compare(const ObservedContainer& changed) {
  const bool runs = changed.state == ObservedContainer::State::kRunning;
  for (const auto& [id, other] : containers_) {
    if (id == changed.id) continue;
    const Pair pair = std::minmax(id, changed.id);
    const bool overlaps = runs && other.state == ObservedContainer::State::kRunning &&
                          (changed.has_its_cpus_alone() || other.has_its_cpus_alone()) &&
                          changed.shares_a_cpu_with(other);
    if (!overlaps) {
      overlapping_.erase(pair);
    } else if (overlapping_.insert(pair).second) {
      ++overlap_count_;
      if (first_report_.empty()) first_report_ = report(changed, other);
    }
  }
}

void Judge::record(std::string line) {
  last_events_.push_back(fmt::format("{:>10.2f} ms  {}", now_ms(), std::move(line)));
  if (last_events_.size() > kReportedEvents) last_events_.pop_front();
}

std::string Judge::report(const ObservedContainer& changed, const ObservedContainer& other) const {
  return fmt::format("overlap after {:.2f} ms: {}; and {}\nthe last {} events before it:\n{}\n", now_ms(),
                     describe(changed), describe(other), last_events_.size(), fmt::join(last_events_, "\n"));
}

}  // namespace topolet::bench
