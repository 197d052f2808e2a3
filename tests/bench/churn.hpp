// Pods that come and go on a machine that is kept full to a level, decided in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::bench {

/// How many CPUs pods ask for, and how often. A whole number of CPUs is asked for exclusively.
struct PodSize {
  std::int64_t milli_cpus = 0;
  std::uint32_t weight = 1;
};

/// Reads "1:4,2:3,0.5": CPUs, and the weight after a colon, which is 1 without it.
Result<std::vector<PodSize>> parse_sizes(const std::string& list);

struct ChurnOptions {
  std::uint32_t cpus = 0;  ///< of the machine
  std::uint32_t fill_percent = 95;
  std::size_t pods = 1000;
  std::vector<PodSize> sizes;
  std::vector<PodSize> beside_sizes = {};  ///< of a second container that each pod has; none: it has one
  std::uint32_t gpus = 0;
  std::uint32_t gpu_pods_percent = 0;  ///< how many of the pods want a GPU
  std::vector<PodSize> gpu_sizes;
  bool takes_lowest_gpu = true;  ///< of those that are free; otherwise one is drawn
  std::uint64_t seed = 1;
};

/// A pod, which is known by its place in the churn.
struct Arrival {
  std::vector<std::size_t> ended_before;  ///< pods that end just before this one arrives
  std::int64_t milli_cpus = 0;            ///< of its first container
  std::int64_t beside_milli_cpus = 0;     ///< of the second; 0: it has one
  std::optional<std::uint32_t> gpu;
  bool is_counted = false;  ///< the machine had been full before

  std::int64_t all_milli_cpus() const { return milli_cpus + beside_milli_cpus; }
  bool is_exclusive() const { return milli_cpus % 1000 == 0; }
  std::uint32_t cpus() const { return static_cast<std::uint32_t>(milli_cpus / 1000); }
};

using Churn = std::vector<Arrival>;

/// Makes a churn whose pods never request more than `fill_percent` of the CPUs together: before a pod arrives that
/// would exceed it, pods end that are drawn from all that are there. A pod that wants a GPU while none is free waits
/// for one, which is to say that a pod drawn from those with a GPU ends before it arrives. The result depends on the
/// options only, not on where pods are placed.
Churn make_churn(const ChurnOptions& options);

}  // namespace topolet::bench
