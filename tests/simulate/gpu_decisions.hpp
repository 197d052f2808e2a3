// The gpu plugin in the simulator, with files that only a test writes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {

/// Files are only those that a test writes below `root_`, in place of the host's.
class GpuDecisions : public testing::Test {
 protected:
  GpuDecisions() {
    for (const char* root : {"sys", "proc", "dev"}) std::filesystem::create_directory(root_.file(root));
  }

  std::vector<std::string> flags(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"--plugins.enable=numa",
                                    "--plugins.enable=gpu",
                                    "--gpu.sysfs-root=" + root_.file("sys"),
                                    "--gpu.proc-root=" + root_.file("proc"),
                                    "--gpu.dev-root=" + root_.file("dev"),
                                    "--gpu.cdi-dirs=" + root_.file("etc/cdi") + ' ' + root_.file("run/cdi"),
                                    "--gpu.nvml-library="};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  SimulatedNode machine(const char* name, const std::vector<std::string>& more = {}) const {
    return SimulatedNode(name, flags(more));
  }

  /// One exclusive CPU, or none with `milli` below 1000.
  static OperationResult create(SimulatedNode& node, const std::string& pod, const std::string& more,
                                int milli = 1000) {
    node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
    return node.apply(fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},)"
                                  R"("cpu_limit_milli":{},"memory_request":1048576,"memory_limit":1048576{}}})",
                                  pod, milli, milli, more.empty() ? "" : "," + more));
  }

  static NodeSet nodes_of(SimulatedNode& node, const OperationResult& outcome) {
    return node.snapshot().topology->nodes_of(outcome.cpus);
  }

  /// Decides for a shared container, which always fits, alone on the machine.
  NodeSet preferred_nodes(const char* name, const std::string& more,
                          const std::vector<std::string>& options = {}) const {
    SimulatedNode node = machine(name, options);
    return nodes_of(node, create(node, "p", more, 500));
  }

  std::string reason(const char* name, const std::string& more, const std::vector<std::string>& options = {}) const {
    SimulatedNode node = machine(name, options);
    return create(node, "p", more, 500).reason;
  }

  static std::string read_machine(const char* name) {
    std::ifstream file(machine_named(name).xml_file);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempDir root_;
};

inline std::string env(const char* name, const std::string& value) {
  return fmt::format(R"("env":{{"{}":"{}"}})", name, value);
}
inline std::string devices(const std::string& path) { return fmt::format(R"("devices":["{}"])", path); }
inline std::string cdi(const std::string& name) { return fmt::format(R"("cdi_devices":["{}"])", name); }

}  // namespace topolet::simulate
