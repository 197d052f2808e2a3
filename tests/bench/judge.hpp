// Judges whether a container that has its CPUs alone ever runs beside another one on any of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::bench {

/// A container as the runtime has it at one moment.
struct ObservedContainer {
  enum class State : std::uint8_t { kCreated, kRunning, kExited, kRemoved };

  std::string id;
  std::string name;  ///< POD/CONTAINER
  State state = State::kCreated;
  CpuSet cpus = {};  ///< empty: the runtime was told none, so that it runs on every CPU
  std::size_t whole_cpus =
      0;  ///< that a Guaranteed container asks for; 0: it asks for parts of CPUs, or is of another QoS

  /// A Guaranteed container that asks for whole CPUs has them alone once it has exactly so many.
  bool has_its_cpus_alone() const { return whole_cpus > 0 && cpus.size() == whole_cpus; }
  bool shares_a_cpu_with(const ObservedContainer& other) const;
};

/// Is told of every change as it takes effect, so that no moment is missed and none is seen that never was. Only
/// containers that run matter. Two that overlap count once until they have ceased to. One thread.
class Judge {
 public:
  /// The container has changed to this. `event` is the change in a word or two, for the report.
  void observe(std::string_view event, const ObservedContainer& container);
  /// Keeps what changes nothing by itself for the report.
  void note(const std::string& container_id, std::string_view event);

  /// How often a container began to run with its CPUs alone.
  std::size_t alone_count() const { return alone_count_; }
  std::size_t overlap_count() const { return overlap_count_; }
  /// Describes the first overlap and the events that led to it; empty if there was none.
  const std::string& first_report() const { return first_report_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Pair = std::pair<std::string, std::string>;  ///< two ids, the lower one first

  bool is_running(const std::string& id) const;
  void compare(const ObservedContainer& changed);
  void record(std::string line);
  std::string report(const ObservedContainer& changed, const ObservedContainer& other) const;
  double now_ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - began_).count(); }

  const Clock::time_point began_ = Clock::now();
  std::map<std::string, ObservedContainer> containers_;  ///< all but removed ones, by id
  std::set<Pair> overlapping_;                           ///< now
  std::deque<std::string> last_events_;
  std::size_t alone_count_ = 0;
  std::size_t overlap_count_ = 0;
  std::string first_report_;
};

}  // namespace topolet::bench
