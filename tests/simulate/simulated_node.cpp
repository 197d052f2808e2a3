#include "tests/simulate/simulated_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace topolet::simulate {
namespace {

const std::filesystem::path kRecorded = std::filesystem::path(TOPOLET_TEST_DATA) / "topologies";

plugin::LoadedConfig setup_of(const std::vector<std::string>& flags) {
  // No vote is to be lost because this machine is busy.
  std::vector<std::string> arguments = {"--config", "/dev/null", "--placement.deadline-ms=60000",
                                        std::string("--daemon.plugin-dir=") + TOPOLET_BUILT_PLUGINS};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  // Pods may use what the plugins offer, unless that is what a test is about.
  const std::string namespaces = "--placement.exclusive-namespaces=";
  const auto is_told = [&](const std::string& flag) { return flag.compare(0, namespaces.size(), namespaces) == 0; };
  if (std::none_of(flags.begin(), flags.end(), is_told)) arguments.push_back(namespaces + "*");
  plugin::LoadedConfig setup = plugin::load_config(config::read_raw(arguments));
  if (!setup.mistakes().empty()) throw std::logic_error(fmt::format("{}", fmt::join(setup.mistakes(), "\n")));
  return setup;
}

}  // namespace

topology::DiscoverOptions machine_named(const std::string& name) {
  if (name.size() > 4 && name.substr(name.size() - 4) == ".xml") return {.xml_file = kRecorded / name};
  return {.synthetic = name};
}

SimulatedNode::SimulatedNode(const std::string& machine, const std::vector<std::string>& flags,
                             const SimulationOptions& options)
    : SimulatedNode(machine_named(machine), flags, options) {}

SimulatedNode::SimulatedNode(const topology::DiscoverOptions& machine, const std::vector<std::string>& flags,
                             const SimulationOptions& options) {
  auto made = Simulation::make(machine, setup_of(flags), options);
  if (!made) throw std::logic_error(made.error().message);
  simulation_ = *std::move(made);
}

OperationResult SimulatedNode::apply(const std::string& line) {
  const auto operation = parse_operation(line);
  if (!operation) throw std::logic_error(operation.error().message + ": " + line);
  return simulation_->apply(*operation);
}

void SimulatedNode::let_pass(std::chrono::milliseconds time) {
  auto clock = parse_operation(R"({"op":"clock","advance_s":0})");
  clock->advance = time;
  simulation_->apply(*clock);
}

OperationResult SimulatedNode::guaranteed(const std::string& pod, int cpus) {
  apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
  return apply(
      fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                  R"("memory_request":1048576,"memory_limit":1048576}})",
                  pod, cpus * 1000, cpus * 1000));
}

OperationResult SimulatedNode::burstable(const std::string& pod, int cpu_request_milli) {
  apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"burstable"}})", pod));
  return apply(
      fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{}}})", pod, cpu_request_milli));
}

OperationResult SimulatedNode::besteffort(const std::string& pod) {
  apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"besteffort"}})", pod));
  return apply(fmt::format(R"({{"op":"create","pod":"{}","container":"main"}})", pod));
}

}  // namespace topolet::simulate
