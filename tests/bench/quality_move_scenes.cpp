// The scenes of the sections that compare options of topoletd.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {
namespace {

struct Machine {
  const char* name;
  const char* topology;
};

constexpr Machine kMachines[] = {{"2 x 64", "pack:2 numa:1 core:32 pu:2"},
                                 {"8 x 24", "pack:2 numa:4 core:12 pu:2"},
                                 {"4 x 18 sub-NUMA", "pack:2 numa:2 core:9 pu:2"},
                                 {"4 x 16", "pack:2 numa:2 core:8 pu:2"},
                                 {"8 x 16", "pack:2 numa:4 core:8 pu:2"}};
struct Setting {
  const char* name;
  std::vector<std::string> settings;
};

std::vector<Setting> move_settings() {
  return {{"off", {"placement.heal=off", "placement.make-room=off"}},
          {"heal shared", {"placement.heal=shared", "placement.make-room=all"}},
          {"heal all", {"placement.heal=all", "placement.make-room=off"}},
          {"heal all, room node", {"placement.heal=all", "placement.make-room=node"}},
          {"heal all, room all", {"placement.heal=all", "placement.make-room=all"}}};
}

Scene with(Scene scene, const Setting& setting) {
  scene.setting = setting.name;
  scene.settings_of_scene = setting.settings;
  return scene;
}

void add_all(const Scene& scene, const std::vector<Setting>& settings, std::vector<Scene>& scenes) {
  for (const Setting& setting : settings) scenes.push_back(with(scene, setting));
}

}  // namespace

std::vector<Scene> node_move_scenes() {
  std::vector<Scene> scenes;
  for (const Machine& machine : kMachines) {
    add_all(make_scene(machine.name, machine.topology, "1-12 CPUs", kFewCpus, 95), move_settings(), scenes);
  }
  return scenes;
}

std::vector<Scene> cache_move_scenes() {
  std::vector<Scene> scenes;
  for (const auto& [pods_name, pod_sizes] :
       {std::pair("1, 2, 6 CPUs", "1,2,6"), std::pair("1, 2, mostly 6 CPUs", "1,2,6:4"),
        std::pair("2-8 CPUs", "2:3,3,4:3,6:2,8:2")}) {
    add_all(make_scene("2 x 8 L3 x 8", "pack:2 numa:1 l3:8 core:8 pu:1", pods_name, pod_sizes, 95), move_settings(),
            scenes);
  }
  return scenes;
}

std::vector<Scene> gpu_move_scenes() {
  std::vector<Scene> scenes;
  for (const auto& [pods_name, gpu_sizes] : {std::pair("with GPU 4, 8; others 2, 4, 8", "4,8"),
                                             std::pair("with GPU 8-16; others 2, 4, 8", "8,10,12,14,16")}) {
    for (const std::uint32_t fill : {70U, 85U, 95U}) {
      Scene scene = make_scene("4 x 32, 8 GPUs", "pack:2 numa:2 core:16 pu:2", pods_name, "2,4,8", fill);
      scene.machine.plugins.push_back("gpu");
      scene.machine.gpus_per_node = 2;
      scene.churn.gpu_pods_percent = 30;
      scene.churn.gpu_sizes = *parse_sizes(gpu_sizes);
      add_all(scene, move_settings(), scenes);
    }
  }
  return scenes;
}

std::vector<Scene> strategy_scenes() {
  std::vector<Scene> scenes;
  for (const Machine& machine : {kMachines[0], kMachines[2]}) {
    for (const std::uint32_t fill : {50U, 70U, 85U, 95U}) {
      add_all(make_scene(machine.name, machine.topology, "1-12 CPUs", kFewCpus, fill),
              {{"packed", {"numa.strategy=packed", "placement.heal=off", "placement.make-room=off"}},
               {"spread", {"numa.strategy=spread", "placement.heal=off", "placement.make-room=off"}},
               {"roomy", {"numa.strategy=roomy", "placement.heal=off", "placement.make-room=off"}}},
              scenes);
    }
  }
  return scenes;
}

std::vector<Scene> burst_scenes() {
  std::vector<Scene> scenes;
  for (const Machine& machine : {kMachines[0], kMachines[2], kMachines[1]}) {
    for (const bool has_hog : {false, true}) {
      // By request 40 % are exclusive.
      Scene scene =
          make_scene(machine.name, machine.topology, has_hog ? "shared 0.2-4.5; 1-8; a hog" : "shared 0.2-4.5; 1-8",
                     "0.2:6,0.5:12,1.5:8,2.5:6,4.5:3,1:2,2:3,4:2,8:1", 85);
      scene.churn.pods = 300;
      scene.machine.shared_may_burst = true;
      scene.has_hog = has_hog;
      Scene pool = with(scene, {"one pool", {}});
      pool.machine.plugins.clear();
      scenes.push_back(pool);
      scenes.push_back(with(scene, {"homes", {}}));
      scene.tells_load = true;
      scenes.push_back(with(scene, {"homes strict, load", {"numa.shared-home=strict"}}));
      scenes.push_back(with(scene, {"homes soft, load", {"numa.shared-home=soft"}}));
    }
  }
  return scenes;
}

}  // namespace topolet::bench
