// Measurements of placements: README.md beside this file defines each figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/churn.hpp"
#include "tests/bench/quality_machine.hpp"

namespace topolet::bench {

struct Figure {
  std::string name;
  double value = 0;  ///< NaN: a share of nothing
  bool is_count = false;
};

/// The figures of one churn, in the order of the table.
using Figures = std::vector<Figure>;

/// One line of a table.
struct Scene {
  std::string machine_name;
  std::string pods_name;
  MachineOptions machine;
  ChurnOptions churn;  ///< without `cpus`, `gpus` and `seed`
};

/// Pods inside one NUMA node, beside a model of the kubelet and beside the best that moves could do.
Figures measure_nodes(const Scene& scene, std::uint64_t seed);
/// Pods inside one L3 cache.
Figures measure_caches(const Scene& scene, std::uint64_t seed);
/// Pods with a GPU whose CPUs are all beside it.
Figures measure_gpus(const Scene& scene, std::uint64_t seed);
/// Shared pods, spread or not, alone or beside exclusive ones.
Figures measure_shared(const Scene& scene, std::uint64_t seed);
/// Pods of two containers on the same nodes.
Figures measure_pods(const Scene& scene, std::uint64_t seed);

struct Section {
  std::string name;
  std::string title;
  Figures (*measure)(const Scene& scene, std::uint64_t seed);
  std::vector<Scene> scenes;
};

/// All sections as they are without options; the machines have no plugin directory yet.
std::vector<Section> sections();

}  // namespace topolet::bench
