// Nodes with the smt plugin and the others, and pods that run there, for tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {

using Flags = std::vector<std::string>;

inline Flags with(Flags more) {
  Flags flags = {"--plugins.enable=numa", "--plugins.enable=gpu", "--plugins.enable=smt"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

/// A pod with one container. `milli` = 0: BestEffort; `annotations`: as in JSON, without the braces.
inline OperationResult run(SimulatedNode& node, const std::string& pod, const std::string& qos, int milli,
                           const std::string& annotations = "") {
  node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"{}","annotations":{{{}}}}})", pod, qos, annotations));
  const std::string limit =
      qos == "guaranteed" ? fmt::format(R"(,"cpu_limit_milli":{},"memory_limit":4096)", milli) : "";
  return node.apply(
      fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{}{}}})", pod, milli, limit));
}

inline constexpr const char* kIsolate = R"("topolet.io/smt":"isolate")";
inline constexpr const char* kHeavy = R"("topolet.io/cpu-profile":"heavy")";
inline constexpr const char* kLight = R"("topolet.io/cpu-profile":"light")";

inline CpuSet cpus_of(SimulatedNode& node, const std::string& pod) {
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    if (entry.key.pod_uid == pod) return entry.placement.cpus;
  }
  return {};
}

}  // namespace topolet::simulate
