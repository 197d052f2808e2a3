// How good the places are that topolet finds, beside what would have been possible.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/quality_counts.hpp"
#include "tests/bench/quality_sections.hpp"
#include "tests/bench/quality_table.hpp"

namespace topolet::bench {
namespace {

namespace po = boost::program_options;

struct Options {
  std::vector<std::string> sections;
  std::uint64_t seed = 1;
  std::uint32_t seeds = 3;
  std::string json;
  std::string topology;
  std::vector<std::uint32_t> fills;
  std::size_t pods = 0;
  std::string sizes;
  std::string beside_sizes;
  std::string gpu_sizes;
  int gpu_pods_percent = -1;
  int gpus_per_node = -1;
  std::string gpu_choice;
  std::string plugin_dir;
  std::vector<std::string> plugins;
  std::vector<std::string> settings;
};

po::options_description described(Options& options) {
  po::options_description description("quality: how good the places are that topolet finds");
  description.add_options()("help", "Show this.")(
      "sections", po::value<std::string>()->default_value("nodes,caches,gpus,shared,pods"), "What to measure.")(
      "seed", po::value(&options.seed)->default_value(1), "Of the first churn; the others follow it.")(
      "seeds", po::value(&options.seeds)->default_value(3), "How many churns of each kind.")(
      "pods", po::value(&options.pods), "How many pods arrive in a churn; 1,000 where nothing else is said.")(
      "fill", po::value(&options.fills)->multitoken(), "How full the machine is kept, in percent.")(
      "topology", po::value(&options.topology),
      "A machine for all sections: a file that `lstopo FILE.xml` wrote, or a description in hwloc's synthetic format.")(
      "sizes", po::value(&options.sizes), "How many CPUs pods ask for, and how often: 1:4,2:3,0.5:1")(
      "beside-sizes", po::value(&options.beside_sizes), "The same of a second container of each pod, in section pods.")(
      "gpu-sizes", po::value(&options.gpu_sizes), "The same of pods with a GPU.")(
      "gpu-pods", po::value(&options.gpu_pods_percent), "How many pods want a GPU, in percent, in section gpus.")(
      "gpus-per-node", po::value(&options.gpus_per_node), "In section gpus.")(
      "gpu-choice", po::value(&options.gpu_choice)->default_value("lowest"),
      "Which free GPU a pod gets: the lowest, or one drawn at random.")(
      "plugin-dir", po::value(&options.plugin_dir)->default_value(TOPOLET_BUILT_PLUGINS), "Where plugins are.")(
      "plugins", po::value(&options.plugins)->multitoken(),
      "Which plugins; otherwise numa, and in section gpus gpu too.")(
      "set", po::value(&options.settings)->composing(), "SECTION.KEY=VALUE, an option of topoletd; may be repeated.")(
      "json", po::value(&options.json), "Also write the figures into this file.");
  return description;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<PodSize> read_sizes(const char* option, const std::string& list) {
  auto sizes = parse_sizes(list);
  if (!sizes) throw po::error(fmt::format("--{}: {}", option, sizes.error().message));
  return *std::move(sizes);
}

/// The scene with what the options say instead.
void apply(const Options& options, Scene& scene, const std::string& section) {
  scene.machine.plugin_dir = options.plugin_dir;
  scene.machine.settings = scene.settings_of_scene;
  scene.machine.settings.insert(scene.machine.settings.end(), options.settings.begin(), options.settings.end());
  if (!options.plugins.empty()) scene.machine.plugins = options.plugins;
  if (!options.topology.empty()) scene.machine.topology = scene.machine_name = options.topology;
  if (options.pods > 0) scene.churn.pods = options.pods;
  if (!options.sizes.empty()) {
    scene.churn.sizes = read_sizes("sizes", options.sizes);
    scene.pods_name = options.sizes;
  }
  if (section == "pods" && !options.beside_sizes.empty()) {
    scene.churn.beside_sizes = read_sizes("beside-sizes", options.beside_sizes);
    scene.pods_name += " and " + options.beside_sizes;
  }
  if (section != "gpus") return;
  if (!options.gpu_sizes.empty()) {
    scene.churn.gpu_sizes = read_sizes("gpu-sizes", options.gpu_sizes);
    scene.pods_name += " gpu " + options.gpu_sizes;
  }
  scene.churn.takes_lowest_gpu = options.gpu_choice == "lowest";
  if (options.gpu_pods_percent >= 0)
    scene.churn.gpu_pods_percent = static_cast<std::uint32_t>(options.gpu_pods_percent);
  if (options.gpus_per_node >= 0) scene.machine.gpus_per_node = static_cast<std::uint32_t>(options.gpus_per_node);
}

/// Scenes that are equal once the options have had their say are run once.
std::vector<Scene> scenes_of(const Section& section, const Options& options) {
  std::vector<Scene> scenes;
  const auto add = [&scenes](const Scene& scene) {
    const bool known = std::any_of(scenes.begin(), scenes.end(), [&scene](const Scene& other) {
      return scene.machine_name == other.machine_name && scene.pods_name == other.pods_name &&
             scene.setting == other.setting && scene.churn.fill_percent == other.churn.fill_percent;
    });
    if (!known) scenes.push_back(scene);
  };
  for (Scene scene : section.scenes) {
    apply(options, scene, section.name);
    if (options.fills.empty()) add(scene);
    for (const std::uint32_t fill : options.fills) {
      scene.churn.fill_percent = fill;
      add(scene);
    }
  }
  return scenes;
}

std::vector<Section> chosen_sections(const Options& options) {
  std::vector<Section> chosen;
  std::vector<Section> all = sections();
  for (const std::string& name : options.sections) {
    const auto found = std::find_if(all.begin(), all.end(), [&name](const Section& s) { return s.name == name; });
    if (found == all.end()) throw po::error(fmt::format("--sections: there is no section '{}'", name));
    found->scenes = scenes_of(*found, options);
    chosen.push_back(*found);
  }
  return chosen;
}

Options read_options(const std::vector<std::string>& arguments, bool& is_help) {
  Options options;
  const po::options_description description = described(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  is_help = values.count("help") != 0;
  if (is_help) std::cout << description;
  options.sections = split(values["sections"].as<std::string>());
  if (options.gpu_choice != "lowest" && options.gpu_choice != "random") {
    throw po::error("--gpu-choice: lowest or random");
  }
  if (options.seeds == 0) throw po::error("--seeds: at least one");
  return options;
}

/// What this build of topolet does not know of the scene's own setting. A mistake of the command line is one of all
/// scenes, and is found where they are measured.
std::string unknown_setting(const Scene& scene, const Options& options) {
  if (scene.settings_of_scene.empty() && !scene.tells_load) return {};
  MachineOptions plain = scene.machine;
  plain.settings = options.settings;
  if (!mistakes_of(plain).empty()) return {};
  const std::vector<std::string> mistakes = mistakes_of(scene.machine);
  if (!mistakes.empty()) return mistakes.front();
  return scene.tells_load && !takes_load() ? "topolet simulate takes no load lines" : "";
}

bool has_any_faults(const std::vector<Figures>& by_seed) {
  return std::any_of(by_seed.begin(), by_seed.end(), [](const Figures& figures) {
    return std::any_of(figures.begin(), figures.end(),
                       [](const Figure& figure) { return figure.name == kFaults && figure.value > 0; });
  });
}

void measure(const std::vector<std::string>& arguments) {
  bool is_help = false;
  const Options options = read_options(arguments, is_help);
  if (is_help) return;
  nlohmann::ordered_json json;
  bool has_faults = false;
  for (const Section& section : chosen_sections(options)) {
    TablePrinter table(section.title);
    json[section.name] = nlohmann::ordered_json::array();
    for (const Scene& scene : section.scenes) {
      if (const std::string unknown = unknown_setting(scene, options); !unknown.empty()) {
        table.print_left_out(scene, unknown);
        continue;
      }
      std::vector<Figures> by_seed;
      for (std::uint32_t i = 0; i < options.seeds; ++i) by_seed.push_back(section.measure(scene, options.seed + i));
      table.print(scene, by_seed);
      has_faults = has_faults || has_any_faults(by_seed);
      json[section.name].push_back(to_json(scene, by_seed));
    }
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << json.dump(1) << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
  }
  if (has_faults) throw std::runtime_error("moves have broken promises, see above");
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  try {
    topolet::bench::measure({argv + 1, argv + argc});
    return 0;
  } catch (const boost::program_options::error& error) {
    fmt::print(stderr, "quality: {}; see --help\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "quality: {}\n", error.what());
    return 1;
  }
}
