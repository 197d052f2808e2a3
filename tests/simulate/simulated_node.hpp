// A simulation for tests: made from a few words, asked in JSON lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/simulate/simulation.hpp"

namespace topolet::simulate {

/// A machine by hwloc's description, or one of those recorded in tests/data by its file's name ("nvidia-dgx2.xml").
topology::DiscoverOptions machine_named(const std::string& name);

class SimulatedNode {
 public:
  /// `flags`: as topoletd's, such as "--plugins.enable=numa". Throws if there is no such simulation.
  explicit SimulatedNode(const std::string& machine, const std::vector<std::string>& flags = {},
                         const SimulationOptions& options = {});
  explicit SimulatedNode(const topology::DiscoverOptions& machine, const std::vector<std::string>& flags = {},
                         const SimulationOptions& options = {});

  /// Throws for a line that is no operation.
  OperationResult apply(const std::string& line);
  /// As the operation clock, by parts of seconds too.
  void let_pass(std::chrono::milliseconds time);

  /// A pod that runs with one container in it, "main"; returns what came of the container.
  OperationResult guaranteed(const std::string& pod, int cpus);
  OperationResult burstable(const std::string& pod, int cpu_request_milli);
  OperationResult besteffort(const std::string& pod);

  std::uint64_t generation() { return simulation_->generation(); }
  Snapshot snapshot() { return simulation_->snapshot(); }
  std::chrono::milliseconds now() const { return simulation_->now(); }
  SimulatedRuntime& runtime() { return simulation_->runtime(); }

 private:
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace topolet::simulate
