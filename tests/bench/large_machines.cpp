// The cost of decisions on machines with many nodes and devices, with 500 containers and the options that take longest:
// each call of each plugin, one decision, the fit on all nodes, a create and a change of the machine as the engine sees
// them.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "core/engine/planning/fits.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/machine/machine.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/plugin/guard/crash_mark.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/simulate/kubelet.hpp"
#include "core/simulate/simulated_daemon.hpp"
#include "tests/bench/crowded_machine.hpp"
#include "tests/bench/statistics.hpp"
#include "tests/bench/timed_plugins.hpp"

namespace topolet::bench {
namespace {

struct OptionSet {
  std::string name;
  std::vector<std::string> flags;
};

const std::vector<std::string> kHeaviest = {"--numa.memory=bind", "--numa.align-by-socket=true", "--gpu.keep-free=true",
                                            "--smt.isolate-siblings=exclusive", "--smt.pair=true"};

std::vector<std::string> heaviest_and(const std::vector<std::string>& flags) {
  std::vector<std::string> all = kHeaviest;
  all.insert(all.end(), flags.begin(), flags.end());
  return all;
}

std::vector<OptionSet> option_sets() {
  return {{"defaults", {}},
          {"full-pcpus-only", heaviest_and({"--numa.full-pcpus-only=true"})},
          {"full-pcpus-only, require", heaviest_and({"--numa.full-pcpus-only=true", "--gpu.affinity=require"})},
          {"full-pcpus-only, no isolation",
           {"--numa.full-pcpus-only=true", "--gpu.keep-free=true", "--smt.pair=true", "--numa.memory=bind"}},
          {"across-numa", heaviest_and({"--numa.full-pcpus-only=true", "--numa.distribute-cpus-across-numa=true"})},
          {"across-cores", heaviest_and({"--numa.distribute-cpus-across-cores=true"})},
          {"by-uncorecache", heaviest_and({"--numa.prefer-align-cpus-by-uncorecache=true"})},
          {"no isolation", {"--gpu.keep-free=true", "--smt.pair=true", "--numa.strategy=spread"}},
          {"restricted", heaviest_and({"--numa.policy=restricted", "--numa.full-pcpus-only=true"})}};
}

/// A part that ends with $ must be the end of the name.
bool is_wanted(const std::string& name, const std::string& part) {
  return part.ends_with('$') ? name.ends_with(part.substr(0, part.size() - 1)) : name.find(part) != std::string::npos;
}

plugin::LoadedConfig load(const OptionSet& options) {
  std::vector<std::string> arguments = {"--config",
                                        "/dev/null",
                                        "--daemon.plugin-dir=" TOPOLET_BUILT_PLUGINS,
                                        "--plugins.enable=numa",
                                        "--plugins.enable=gpu",
                                        "--plugins.enable=smt"};
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  plugin::LoadedConfig setup = plugin::load_config(config::read_raw(arguments));
  if (!setup.mistakes().empty()) throw std::runtime_error(setup.mistakes().front());
  return setup;
}

struct Asked {
  std::shared_ptr<plugin::PluginPolicy> plugin;
  std::int32_t weight = 1;
};

std::vector<Asked> plugins_of(const plugin::LoadedConfig& setup) {
  const config::Options& options = setup.config.options;
  std::vector<Asked> all;
  for (const config::PluginOptions& of_plugin : options.plugins) {
    for (const plugin::PluginLibrary& library : setup.plugins.libraries) {
      if (library.id() != of_plugin.name) continue;
      auto made = library.create({of_plugin.values.begin(), of_plugin.values.end()}, make_silent_log(),
                                 {.configuration = options.configuration});
      if (!made) throw std::runtime_error(made.error().message);
      all.push_back({*std::move(made), of_plugin.weight});
    }
  }
  return all;
}

struct Limits {
  int rounds = 0;
  double seconds = 0;  ///< after so long no further round begins
};

/// Calls `round` as often as the limits allow, at least twice, the first time for nothing.
void repeat(const Limits& limits, const std::function<void()>& round) {
  double spent = 0;
  for (int i = 0; i < std::max(limits.rounds, 2) && (i < 2 || spent < limits.seconds * 1e3); ++i) {
    spent += time_of(CLOCK_PROCESS_CPUTIME_ID, round);
  }
}

/// Without threads. `samples` points to where the times of each decision go.
engine::Placer placer_for(const std::shared_ptr<const topology::Topology>& machine, const plugin::LoadedConfig& setup,
                          Samples* const& samples) {
  const auto views = std::make_shared<Views>(machine);
  const auto decide = [&samples, views, plugins = plugins_of(setup)](const auto& request, const auto& rules) {
    views->forget_request();
    std::vector<placement::Vote> votes;
    for (const Asked& of_plugin : plugins) {
      votes.push_back({std::make_shared<TimedPolicy>(of_plugin.plugin, *views, *samples), of_plugin.weight});
    }
    return samples->time("decide()", [&] { return placement::decide(*request, rules, votes); });
  };
  return engine::Placer({.topology = machine,
                         .candidates = placement::make_candidates(*machine, machine->allowed),
                         .rules = setup.config.options.placement.rules,
                         .decide = decide});
}

/// The decisions on one workload as Placer makes them.
void measure_decisions(const MachineShape& shape, const plugin::LoadedConfig& setup, const NamedWorkload& asked,
                       const Limits& limits, Samples& samples) {
  const std::shared_ptr<const topology::Topology> machine = machine_with_gpus(shape);
  const engine::Ledger ledger = ledger_with_containers(*machine);
  Samples warm_up;
  Samples* samples_of_round = &warm_up;
  const engine::Placer placer = placer_for(machine, setup, samples_of_round);
  repeat(limits, [&] {
    const engine::Plan plan = samples_of_round->time("plan", [&] { return placer.plan(ledger, asked.workload); });
    engine::Event event = engine::event::CreateAdmitted{asked.workload, plan};
    if (plan.decision.denied) event = engine::event::Denied{asked.workload, plan.decision};
    const engine::Transition transition = samples_of_round->time(
        "transition", [&] { return compute_transition(ledger, placer.rules(), std::chrono::milliseconds(0), event); });
    samples_of_round = &samples;
  });
}

/// Measures the question how one more container would fit on each of the nodes.
void measure_fits(const MachineShape& shape, const plugin::LoadedConfig& setup, const Limits& limits,
                  Samples& samples) {
  const std::shared_ptr<const topology::Topology> machine = machine_with_gpus(shape);
  const engine::Ledger ledger = ledger_with_containers(*machine);
  Samples of_decisions;
  Samples* const samples_of_decisions = &of_decisions;
  const engine::Placer placer = placer_for(machine, setup, samples_of_decisions);
  compute_fits(placer, ledger, {});
  repeat(limits, [&] { samples.time("fits on all nodes", [&] { return compute_fits(placer, ledger, {}); }); });
}

simulate::Operation operation_for(const placement::Workload& workload) {
  simulate::Operation operation;
  operation.pod = workload.key.pod_uid;
  operation.container = workload.key.name;
  operation.name = workload.pod_name;
  operation.qos = to_string(workload.qos);
  operation.devices = workload.devices;
  for (const auto& [name, value] : workload.settings) operation.annotations["topolet.io/" + name] = value;
  simulate::Resources& resources = operation.resources;
  if (workload.demand.cpu_request_milli > 0) resources.cpu_request_milli = workload.demand.cpu_request_milli;
  if (workload.demand.cpu_limit_milli > 0) resources.cpu_limit_milli = workload.demand.cpu_limit_milli;
  if (workload.demand.memory_limit_bytes > 0) {
    resources.memory_request = resources.memory_limit = workload.demand.memory_limit_bytes;
  }
  return operation;
}

/// The engine with an in-memory runtime and database; everything that it does counts, whatever the thread.
class EngineUnderTest {
 public:
  /// `on_whole_pool`: so many BestEffort containers besides.
  EngineUnderTest(const MachineShape& shape, const plugin::LoadedConfig& setup, int on_whole_pool)
      : shape_(shape), setup_(setup), daemon_(setup_, runtime_, busy_) {
    if (const Status started = daemon_.start(machine({})); !started) throw std::runtime_error(started.error().message);
    const engine::Ledger wanted = ledger_with_containers(*machine_with_gpus(shape_));
    for (const auto& [key, allocation] : wanted.allocations()) create(allocation.workload);
    for (int number = 0; number < on_whole_pool; ++number) create(best_effort(fmt::format("best-effort-{}", number)));
  }

  /// `workloads`: only those with this in their names; "machine" for its changes.
  void measure(const Limits& limits, const std::string& workloads, Samples& samples) {
    for (const NamedWorkload& asked : workloads_for(shape_)) {
      if (!is_wanted(asked.name, workloads)) continue;
      repeat(limits, [&] {
        samples.add("create: " + asked.name, create(asked.workload));
        samples.add("remove: " + asked.name, remove_last());
      });
    }
    if (!is_wanted("machine", workloads)) return;
    const std::vector<std::pair<std::string, CpuSet>> changes = {
        {"one CPU", {8}}, {"one node", CpuSet::range(0, static_cast<std::uint32_t>(2 * shape_.cores_per_node - 1))}};
    for (const auto& [name, cpus] : changes) {
      repeat(limits, [&] {
        samples.add("offline: " + name, change(cpus, samples));
        samples.add("online: " + name, change({}, samples));
      });
    }
  }

 private:
  engine::Engine::Machine machine(const CpuSet& offline) const {
    return machine::make_machine(machine_with_gpus(shape_, offline), setup_.config.options.placement, std::nullopt);
  }

  double change(const CpuSet& offline, Samples& samples) {
    std::shared_ptr<const topology::Topology> topology;
    samples.add("discover", time_of(CLOCK_PROCESS_CPUTIME_ID, [&] { topology = machine_with_gpus(shape_, offline); }));
    engine::Engine::Machine changed;
    const double made = time_of(CLOCK_PROCESS_CPUTIME_ID, [&] {
      changed = machine::make_machine(std::move(topology), setup_.config.options.placement, std::nullopt);
    });
    samples.add("candidates", made);
    return time_of(CLOCK_PROCESS_CPUTIME_ID, [&] { daemon_.change_machine(std::move(changed)); });
  }

  double create(const placement::Workload& workload) {
    const simulate::Operation operation = operation_for(workload);
    const std::string run_pod = run_pod_request(operation, daemon_.memory_total_bytes());
    lens::Target sandbox;
    sandbox.ParseFromString(daemon_.call("RunPodSandbox", run_pod).body);
    last_sandbox_ = sandbox.id();
    const std::string request = create_request(operation, {operation, sandbox.id()}, 0, daemon_.memory_total_bytes());
    cri::RuntimeResponse answer;
    const double ms = time_of(CLOCK_PROCESS_CPUTIME_ID, [&] { answer = daemon_.call("CreateContainer", request); });
    lens::Target container;
    if (answer.code == Code::kOk && container.ParseFromString(answer.body)) {
      daemon_.call("StartContainer", simulate::id_request(container.id()));
    }
    daemon_.clear_recorded();
    return ms;
  }

  double remove_last() {
    return time_of(CLOCK_PROCESS_CPUTIME_ID, [&] {
      daemon_.call("StopPodSandbox", simulate::id_request(last_sandbox_));
      daemon_.call("RemovePodSandbox", simulate::id_request(last_sandbox_));
    });
  }

  const MachineShape shape_;
  const plugin::LoadedConfig& setup_;
  simulate::SimulatedRuntime runtime_;
  std::timed_mutex busy_;
  simulate::SimulatedDaemon daemon_;
  std::string last_sandbox_;
};

struct Arguments {
  std::vector<std::string> machines;
  std::string options;    ///< part of the name
  std::string workloads;  ///< part of the name
  bool each = false;
  bool engine = true;
  int on_whole_pool = 0;
  bool decisions = true;
  Limits limits;
};

const std::map<std::string, MachineShape>& shapes() {
  static const std::map<std::string, MachineShape> kShapes = {
      {"2/64", {2, 1, 16}}, {"24/384", {4, 6, 8}}, {"32/1024", {4, 8, 16}}, {"64/2048", {8, 8, 16}}};
  return kShapes;
}

std::optional<Arguments> read_arguments(int argc, char** argv) {
  namespace po = boost::program_options;
  Arguments arguments;
  po::options_description known("options");
  po::options_description_easy_init add = known.add_options();
  add("help", "print this");
  add("machines",
      po::value(&arguments.machines)->multitoken()->default_value({"2/64", "24/384", "32/1024", "64/2048"}, "all"),
      "nodes/CPUs: 2/64, 24/384, 32/1024, 64/2048");
  add("options", po::value(&arguments.options), "only sets of options with this in their names");
  add("workloads", po::value(&arguments.workloads),
      "only workloads with this in their names, or at their end if it ends with $; machine: only CPUs that go and come "
      "back; fits: only what fits");
  add("rounds", po::value(&arguments.limits.rounds)->default_value(200), "of each measurement, at most");
  add("seconds", po::value(&arguments.limits.seconds)->default_value(0.5), "of CPU time for each measurement");
  add("each", po::bool_switch(&arguments.each), "a table for each set of options and workload, not only the worst");
  add("best-effort", po::value(&arguments.on_whole_pool)->default_value(0),
      "so many containers besides that run on the whole pool, for the engine");
  add("no-engine", "decisions only");
  add("no-decisions", "the engine only");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, known), given);
  po::notify(given);
  arguments.engine = given.count("no-engine") == 0;
  arguments.decisions = given.count("no-decisions") == 0;
  if (given.count("help") == 0) return arguments;
  std::cout << known;
  return std::nullopt;
}

/// The worst case of each thing that was measured.
class Worst {
 public:
  void take(const Samples& samples, const std::string& where) {
    for (const auto& [what, times] : samples.times()) {
      const Case seen{quantile(times, 0.5), quantile(times, 0.99), where};
      const auto [known, is_new] = cases_.try_emplace(what, seen);
      if (!is_new && known->second.p50 < seen.p50) known->second = seen;
    }
  }

  void print() const {
    fmt::print("{:<40} {:>9} {:>9}  {}\n", "CPU time in ms", "p50", "p99", "worst with");
    for (const auto& [what, seen] : cases_) {
      fmt::print("{:<40} {:>9.3f} {:>9.3f}  {}\n", what, seen.p50, seen.p99, seen.where);
    }
    std::fflush(stdout);
  }

 private:
  struct Case {
    double p50 = 0;
    double p99 = 0;
    std::string where;
  };
  std::map<std::string, Case> cases_;
};

void print_each(const Samples& samples, const std::string& where) {
  fmt::print("\n{}\n", where);
  Worst only;
  only.take(samples, "");
  only.print();
}

void measure_machine(const MachineShape& shape, const Arguments& arguments) {
  Worst worst;
  for (const OptionSet& options : option_sets()) {
    if (!is_wanted(options.name, arguments.options)) continue;
    const plugin::LoadedConfig setup = load(options);
    if (arguments.decisions && is_wanted("fits", arguments.workloads)) {
      Samples samples;
      measure_fits(shape, setup, arguments.limits, samples);
      worst.take(samples, options.name);
      if (arguments.each) print_each(samples, options.name);
    }
    for (const NamedWorkload& asked : workloads_for(shape)) {
      if (!arguments.decisions || !is_wanted(asked.name, arguments.workloads)) continue;
      Samples samples;
      measure_decisions(shape, setup, asked, arguments.limits, samples);
      const std::string where = options.name + "; " + asked.name;
      worst.take(samples, where);
      if (arguments.each) print_each(samples, where);
    }
    if (!arguments.engine) continue;
    Samples samples;
    EngineUnderTest(shape, setup, arguments.on_whole_pool).measure(arguments.limits, arguments.workloads, samples);
    worst.take(samples, options.name);
    if (arguments.each) print_each(samples, options.name);
  }
  worst.print();
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  // As in topoletd: without, what plugins are lent is compared after each call.
  topolet::plugin::record_crashes_to(-1, "large_machines");
  try {
    const auto arguments = topolet::bench::read_arguments(argc, argv);
    if (!arguments) return 0;
    for (const std::string& machine : arguments->machines) {
      const topolet::bench::MachineShape& shape = topolet::bench::shapes().at(machine);
      fmt::print("\n# {} nodes, {} CPUs, {} containers\n", shape.nodes(), shape.cpus(), topolet::bench::kContainers);
      topolet::bench::measure_machine(shape, *arguments);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
