#include "tests/simulate/hybrid_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <vector>

namespace topolet::simulate {
namespace {

const std::vector<std::vector<unsigned>> kCores = {{0, 1}, {2, 3}, {4}, {5}, {6}, {7}};

/// hwloc's XML, object by object.
class Writer {
 public:
  std::string object(const char* type, unsigned os_index, unsigned cpus, unsigned nodes, const std::string& inside) {
    return fmt::format(
        "<object type=\"{}\" os_index=\"{}\" cpuset=\"{:#x}\" complete_cpuset=\"{:#x}\" nodeset=\"{:#x}\" "
        "complete_nodeset=\"{:#x}\" gp_index=\"{}\">\n{}</object>\n",
        type, os_index, cpus, cpus, nodes, nodes, ++objects_, inside);
  }

  /// A package that is a node, with some of the cores.
  std::string package(unsigned node, std::size_t from, std::size_t to) {
    const unsigned nodes = 1U << node;
    unsigned all = 0;
    std::string cores;
    for (std::size_t i = from; i < to; ++i) {
      unsigned cpus = 0;
      std::string pus;
      for (const unsigned pu : kCores[i]) {
        cpus |= 1U << pu;
        pus += object("PU", pu, 1U << pu, nodes, "");
      }
      cores += object("Core", kCores[i][0], cpus, nodes, pus);
      all |= cpus;
    }
    return object("Package", node, all, nodes, object("NUMANode", node, all, nodes, "") + cores);
  }

 private:
  int objects_ = 0;
};

}  // namespace

HybridMachine::HybridMachine(Shape shape)
    : file_(std::filesystem::temp_directory_path() / fmt::format("topolet-hybrid-{}.xml", ::getpid())) {
  Writer xml;
  const std::size_t fast = 2;
  const std::string packages = shape.two_nodes ? xml.package(0, 0, fast) + xml.package(1, fast, kCores.size())
                                               : xml.package(0, 0, kCores.size());
  std::ofstream file(file_);
  file << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
       << xml.object("Machine", 0, 0xff, shape.two_nodes ? 3 : 1, packages);
  if (shape.tells_kinds) {
    file << "<cpukind cpuset=\"0xf0\" forced_efficiency=\"0\"/>\n<cpukind cpuset=\"0x0f\" forced_efficiency=\"1\"/>\n";
  }
  file << "</topology>\n";
}

}  // namespace topolet::simulate
