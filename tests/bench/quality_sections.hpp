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
  std::vector<std::string> notes = {};  ///< shown below the line
};

/// The figures of one churn, in the order of the table.
using Figures = std::vector<Figure>;

/// One line of a table.
struct Scene {
  std::string machine_name;
  std::string pods_name;
  MachineOptions machine;
  ChurnOptions churn;                               ///< without `cpus`, `gpus` and `seed`
  std::string setting = {};                         ///< the name of what follows; empty: topoletd's defaults
  std::vector<std::string> settings_of_scene = {};  ///< SECTION.KEY=VALUE, beside those of all scenes
  bool tells_load = false;                          ///< topolet is told what containers use
  bool has_hog = false;                             ///< one that shares CPUs uses all that it can get
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

/// Pods inside one node, with moves and without.
Figures measure_node_moves(const Scene& scene, std::uint64_t seed);
/// Pods inside one L3 cache, with moves and without.
Figures measure_cache_moves(const Scene& scene, std::uint64_t seed);
/// Pods with a GPU, with moves and without.
Figures measure_gpu_moves(const Scene& scene, std::uint64_t seed);
/// The strategies of the plugin numa.
Figures measure_strategies(const Scene& scene, std::uint64_t seed);
/// Exclusive and shared pods, the shared ones with bursts.
Figures measure_bursts(const Scene& scene, std::uint64_t seed);

struct Section {
  std::string name;
  std::string title;
  Figures (*measure)(const Scene& scene, std::uint64_t seed);
  std::vector<Scene> scenes;
};

/// Scenes of the last five.
std::vector<Scene> node_move_scenes();
std::vector<Scene> cache_move_scenes();
std::vector<Scene> gpu_move_scenes();
std::vector<Scene> strategy_scenes();
std::vector<Scene> burst_scenes();

/// Sizes of pods, skewed to few CPUs, as services are.
inline constexpr const char* kFewCpus = "1:4,2:4,3:2,4:3,6:2,8:2,10:1,12:2";

/// One scene without a setting. `pod_sizes`: as for parse_sizes().
Scene make_scene(const char* machine_name, const char* topology, const char* pods_name, const char* pod_sizes,
                 std::uint32_t fill);

/// All sections as they are without options; the machines have no plugin directory yet.
std::vector<Section> sections();

}  // namespace topolet::bench
