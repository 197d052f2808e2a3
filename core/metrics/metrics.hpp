// Counts and measures topoletd's work, in the text format of Prometheus.
//
// The room core/metrics, namespace topolet::metrics: hears of calls from the proxy and of transitions from the engine,
// and puts numbers together when it is asked. It listens nowhere: the watch socket carries the text. No label has a
// value that a pod chooses; the names of runtime handlers are the runtime's. The room may include core/base,
// core/cri/call.hpp and methods.hpp, core/placement, core/topology and core/engine/state.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cri/call.hpp"
#include "core/engine/state/observer.hpp"

namespace topolet::metrics {

/// CPUs and requests of one NUMA node, or of the CPUs outside any.
struct NodeUsage {
  std::string node;  ///< OS index, or "none"; not the name of a Node
  std::size_t pool_cpus = 0;
  std::size_t exclusive_cpus = 0;       ///< that are so, as far as was seen
  std::size_t lost_exclusive_cpus = 0;  ///< that were given exclusively, and are not so now; see engine::seen_mode()
  std::size_t withheld_cpus = 0;
  std::size_t reserved_cpus = 0;
  std::int64_t requested_milli = 0;
  std::size_t could_be_narrower = 0;  ///< containers here on more nodes than their CPUs need; see could_be_narrower()
};

/// Returns the usage of every node with CPUs, as the ledger's topology has them.
std::vector<NodeUsage> node_usage_of(const engine::Ledger& ledger);

/// The engine at one moment.
struct EngineState {
  std::uint64_t generation = 0;
  bool reconciled = false;
  bool store_degraded = false;
  std::map<std::string, std::uint32_t> containers;  ///< by engine::seen_mode()
  std::uint32_t squeezed = 0;
  std::uint32_t overlapping = 0;                      ///< containers that run on CPUs which another one has exclusively
  std::uint32_t overruled = 0;                        ///< containers whose CPUs something else sets
  std::uint32_t stuck = 0;                            ///< containers that do not leave CPUs
  std::map<std::string, std::uint32_t> foreign = {};  ///< containers that are not placed, by runtime handler
  std::vector<NodeUsage> nodes;
};

/// The state database, as it was seen a while ago.
struct StoreFigures {
  std::int64_t bytes = 0;                               ///< of its file and the log beside it
  std::optional<std::int64_t> oldest_decision_ms = {};  ///< wall clock; none: it has no decision
};

/// The counts of one plugin since the start.
struct PluginCounts {
  std::string id;
  std::uint64_t calls = 0;
  std::map<std::string, std::uint64_t> lost_votes;  ///< by why
  bool quarantined = false;
  std::uint64_t late_ticks = 0;
};

/// What is measured of the CPUs, by the OS index of the NUMA node; what is not known is missing.
struct LoadFigures {
  double age_seconds = 0;
  std::map<std::string, double> used_cpus = {};
  std::map<std::string, double> effective_cpus = {};
  std::optional<std::uint32_t> held_back_by_memory_high = {};  ///< containers; none: of no container it is known
};

/// The values that are sampled instead of counted.
struct Moment {
  std::optional<EngineState> engine;  ///< none: it did not answer in time
  std::vector<PluginCounts> plugins;
  bool runtime_connected = false;
  std::optional<StoreFigures> store = {};  ///< none: not known, or there is none
  /// The most CPUs that one container could get for itself, by the OS index of the NUMA node; none: not known.
  std::optional<std::map<std::string, std::uint32_t>> largest_exclusive = {};
  std::optional<LoadFigures> load = {};  ///< none: nothing is measured
};

/// on_call() is for the proxy's thread, the engine's functions for its loop, text() for any.
class Metrics final : public engine::Observer {
 public:
  /// `version`: topoletd's.
  explicit Metrics(const std::string& version);
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void on_call(const cri::FinishedCall& call);
  /// The configuration was read again; `succeeded`: it is in force. The start counts as the first time. Any thread.
  void on_reload(bool succeeded);
  void on_durable(const engine::Transition& transition) override;
  void on_written(const engine::Transition& transition) override;

  std::string text(const Moment& moment) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::metrics
