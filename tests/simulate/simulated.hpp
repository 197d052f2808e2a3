// A simulation for tests: made from a few words, asked in JSON lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/simulate/simulation.hpp"

namespace topolet::simulate {

/// A machine by hwloc's description, or one of those recorded in tests/data by its file's name ("nvidia-dgx2.xml").
DiscoverOptions machine_named(const std::string& name);

class Simulated {
 public:
  /// `flags`: as topoletd's, such as "--plugins.enable=numa". Throws if there is no such simulation.
  explicit Simulated(const std::string& machine, const std::vector<std::string>& flags = {});

  /// Throws for a line that is no operation.
  Outcome apply(const std::string& line);

  /// A pod that runs with one container in it, "main"; returns what came of the container.
  Outcome guaranteed(const std::string& pod, int cpus);
  Outcome burstable(const std::string& pod, int cpu_request_milli);
  Outcome besteffort(const std::string& pod);

  Picture picture() { return simulation_->picture(); }
  SimulatedRuntime& runtime() { return simulation_->runtime(); }

 private:
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace topolet::simulate
