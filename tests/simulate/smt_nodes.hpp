// Nodes with the smt plugin and the others, and pods that run there, for tests.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/simulate/simulated.hpp"

namespace topolet::simulate {

using Flags = std::vector<std::string>;

inline Flags with(Flags more) {
  Flags flags = {"--plugins.enable=numa", "--plugins.enable=gpu", "--plugins.enable=smt"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

/// Two cores of two threads, CPUs 0-3, and four of one, 4-7, which are slower, as the machine may tell.
class HybridMachine {
 public:
  explicit HybridMachine(bool tells_kinds = true)
      : file_(std::filesystem::temp_directory_path() / fmt::format("topolet-hybrid-{}.xml", getpid())) {
    std::string cores;
    for (const auto& core : std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4}, {5}, {6}, {7}}) {
      unsigned all = 0;
      std::string pus;
      for (const int pu : core) {
        all |= 1U << pu;
        pus += object("PU", pu, 1U << pu, "");
      }
      cores += object("Core", core[0], all, pus);
    }
    const std::string node = object("NUMANode", 0, 0xff, "");
    std::ofstream(file_) << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                            "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
                         << object("Machine", 0, 0xff, object("Package", 0, 0xff, node + cores))
                         << (!tells_kinds ? "</topology>\n"
                                          : "<cpukind cpuset=\"0xf0\" forced_efficiency=\"0\"/>\n"
                                            "<cpukind cpuset=\"0x0f\" forced_efficiency=\"1\"/>\n</topology>\n");
  }
  ~HybridMachine() { std::filesystem::remove(file_); }
  HybridMachine(const HybridMachine&) = delete;
  HybridMachine& operator=(const HybridMachine&) = delete;

  std::string file() const { return file_.string(); }

 private:
  std::string object(const char* type, int os_index, unsigned cpus, const std::string& inside) {
    return fmt::format(
        "<object type=\"{}\" os_index=\"{}\" cpuset=\"{:#x}\" complete_cpuset=\"{:#x}\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"{}\">\n{}</object>\n",
        type, os_index, cpus, cpus, ++objects_, inside);
  }

  int objects_ = 0;
  const std::filesystem::path file_;
};

/// A pod with one container. `milli` = 0: BestEffort; `annotations`: as in JSON, without the braces.
inline Outcome run(Simulated& node, const std::string& pod, const std::string& qos, int milli,
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

inline CpuSet cpus_of(Simulated& node, const std::string& pod) {
  for (const LedgerEntry& entry : node.picture().ledger.entries) {
    if (entry.key.pod_uid == pod) return entry.placement.cpus;
  }
  return {};
}

}  // namespace topolet::simulate
