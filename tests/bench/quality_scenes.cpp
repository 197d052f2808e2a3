#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {
namespace {

const std::vector<std::uint32_t> kFills = {70, 85, 95};

constexpr const char* kUpToEight = "1:4,2:4,3:2,4:3,6:2,8:2";
constexpr const char* kUpToSix = "1:4,2:4,3:2,4:2,6";
constexpr const char* kShared = "0.5:4,1.5:4,2.5:3,4.5:2,6.5";

std::vector<PodSize> sizes(const char* list) {
  auto read = parse_sizes(list);
  if (!read) throw std::logic_error(read.error().message);
  return *std::move(read);
}

std::vector<Scene> node_scenes() {
  return {make_scene("2 x 32", "pack:2 numa:1 core:16 pu:2", "1-12 CPUs", kFewCpus, 95),
          make_scene("4 x 16", "pack:2 numa:2 core:8 pu:2", "1-12 CPUs", kFewCpus, 95),
          make_scene("8 x 16", "pack:2 numa:4 core:8 pu:2", "1-12 CPUs", kFewCpus, 95)};
}

std::vector<Scene> cache_scenes() {
  std::vector<Scene> scenes;
  for (const auto& [pods_name, pod_sizes] :
       {std::pair("6 CPUs", "6"), std::pair("1, 2, 6 CPUs", "1,2,6:4"), std::pair("2-8 CPUs", "2:3,3,4:3,6:2,8:2")}) {
    for (const auto& [name, topology] : {std::pair("2 x 8 L3 x 8", "pack:2 numa:1 l3:8 core:8 pu:1"),
                                         std::pair("2 x 8 L3 x 8 x 2", "pack:2 numa:1 l3:8 core:8 pu:2")}) {
      for (const std::uint32_t fill : kFills) scenes.push_back(make_scene(name, topology, pods_name, pod_sizes, fill));
    }
  }
  return scenes;
}

std::vector<Scene> gpu_scenes() {
  std::vector<Scene> scenes;
  for (const auto& [pods_name, gpu_sizes] : {std::pair("with GPU 4, 8; others 2, 4, 8", "4,8"),
                                             std::pair("with GPU 8-16; others 2, 4, 8", "8,10,12,14,16")}) {
    for (const std::uint32_t fill : kFills) {
      Scene& added =
          scenes.emplace_back(make_scene("4 x 32, 8 GPUs", "pack:2 numa:2 core:16 pu:2", pods_name, "2,4,8", fill));
      added.machine.plugins.push_back("gpu");
      added.machine.gpus_per_node = 2;
      added.churn.gpu_pods_percent = 30;
      added.churn.gpu_sizes = sizes(gpu_sizes);
    }
  }
  return scenes;
}

std::vector<Scene> shared_scenes() {
  Scene alone = make_scene("2 x 32", "pack:2 numa:1 core:16 pu:2", "160 x 0.2 CPU", "0.2", 100);
  alone.churn.pods = 160;
  return {alone, make_scene("2 x 32", "pack:2 numa:1 core:16 pu:2", "0.1-1.5 shared; 1-8 exclusive",
                            "0.1:6,0.2:8,0.5:6,1.5:2,1:1,2:3,4:3,8", 85)};
}

std::vector<Scene> pod_scenes() {
  struct Pods {
    const char* name;
    const char* first;
    const char* beside;
  };
  std::vector<Scene> scenes;
  for (const auto& [name, topology] :
       {std::pair("2 x 32", "pack:2 numa:1 core:16 pu:2"), std::pair("4 x 16", "pack:2 numa:2 core:8 pu:2")}) {
    for (const Pods& pods :
         {Pods{"shared 0.5-6.5; proxy 0.1", kShared, "0.1"}, Pods{"1-8 CPUs; proxy 0.1", kUpToEight, "0.1"},
          Pods{"two of 1-6 CPUs", kUpToSix, kUpToSix}}) {
      for (const std::uint32_t fill : {70U, 95U}) {
        scenes.push_back(make_scene(name, topology, pods.name, pods.first, fill));
        scenes.back().churn.beside_sizes = sizes(pods.beside);
      }
    }
  }
  return scenes;
}

}  // namespace

Scene make_scene(const char* machine_name, const char* topology, const char* pods_name, const char* pod_sizes,
                 std::uint32_t fill) {
  Scene scene;
  scene.machine_name = machine_name;
  scene.machine.topology = topology;
  scene.machine.plugins = {"numa"};
  scene.pods_name = pods_name;
  scene.churn.sizes = sizes(pod_sizes);
  scene.churn.fill_percent = fill;
  return scene;
}

std::vector<Section> sections() {
  return {
      {"nodes", "Exclusive pods inside one NUMA node at admission", measure_nodes, node_scenes()},
      {"caches", "Exclusive pods inside one L3 cache at admission", measure_caches, cache_scenes()},
      {"gpus", "Pods with one GPU and all CPUs beside it at admission", measure_gpus, gpu_scenes()},
      {"shared", "Shared pods, and exclusive ones beside them", measure_shared, shared_scenes()},
      {"pods", "Pods of two containers", measure_pods, pod_scenes()},
      {"node-moves", "Exclusive pods inside one NUMA node, and moves for that", measure_node_moves, node_move_scenes()},
      {"cache-moves", "Exclusive pods inside one L3 cache, and moves for that", measure_cache_moves,
       cache_move_scenes()},
      {"gpu-moves", "Pods with one GPU and all CPUs beside it, and moves for that", measure_gpu_moves,
       gpu_move_scenes()},
      {"strategies", "Strategies: packed, spread, roomy", measure_strategies, strategy_scenes()},
      {"bursts", "Bursts of shared pods beside exclusive ones (40 % of the requests)", measure_bursts, burst_scenes()}};
}

}  // namespace topolet::bench
