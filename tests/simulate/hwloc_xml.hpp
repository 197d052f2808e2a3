// Machines in hwloc's XML, object by object, for tests.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace topolet::simulate {

/// The CPUs of each core, which are below 32.
using XmlCores = std::vector<std::vector<unsigned>>;

class HwlocXml {
 public:
  std::string object(const char* type, unsigned os_index, unsigned cpus, unsigned nodes, const std::string& inside,
                     const std::string& attributes = "") {
    return fmt::format(
        "<object type=\"{}\" os_index=\"{}\" cpuset=\"{:#x}\" complete_cpuset=\"{:#x}\" nodeset=\"{:#x}\" "
        "complete_nodeset=\"{:#x}\" gp_index=\"{}\" {}>\n{}</object>\n",
        type, os_index, cpus, cpus, nodes, nodes, ++objects_, attributes, inside);
  }

  /// A package that is the node, or whose CPUs are outside any node.
  std::string package(unsigned os_index, std::optional<unsigned> node, const XmlCores& cores) {
    const unsigned nodes = node ? 1U << *node : 0;
    unsigned all = 0;
    std::string inside;
    for (const std::vector<unsigned>& core : cores) {
      unsigned cpus = 0;
      std::string pus;
      for (const unsigned pu : core) {
        cpus |= 1U << pu;
        pus += object("PU", pu, 1U << pu, nodes, "");
      }
      inside += object("Core", core[0], cpus, nodes, pus);
      all |= cpus;
    }
    const auto memory = node ? memory_bytes.find(*node) : memory_bytes.end();
    const std::string size = memory == memory_bytes.end() ? "" : fmt::format("local_memory=\"{}\"", memory->second);
    const std::string numa_node = node ? object("NUMANode", *node, all, nodes, huge_pages, size) : "";
    return object("Package", os_index, all, nodes, numa_node + inside);
  }

  /// `more`: elements that follow the machine.
  std::string machine(unsigned cpus, unsigned nodes, const std::string& packages, const std::string& more = "") {
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
           "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n" +
           object("Machine", 0, cpus, nodes, packages) + more + "</topology>\n";
  }

  std::string huge_pages;                         ///< of each node, as elements "page_type"
  std::map<unsigned, std::int64_t> memory_bytes;  ///< of the nodes of which it is known

 private:
  int objects_ = 0;
};

}  // namespace topolet::simulate
