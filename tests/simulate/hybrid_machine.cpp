#include "tests/simulate/hybrid_machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "tests/simulate/hwloc_xml.hpp"

namespace topolet::simulate {
namespace {

const XmlCores kCores = {{0, 1}, {2, 3}, {4}, {5}, {6}, {7}};
constexpr std::ptrdiff_t kFast = 2;

}  // namespace

HybridMachine::HybridMachine(Shape shape)
    : file_(std::filesystem::temp_directory_path() / fmt::format("topolet-hybrid-{}.xml", ::getpid())) {
  HwlocXml xml;
  const XmlCores fast(kCores.begin(), kCores.begin() + kFast);
  const XmlCores slow(kCores.begin() + kFast, kCores.end());
  const std::string packages =
      shape.two_nodes ? xml.package(0, 0, fast) + xml.package(1, 1, slow) : xml.package(0, 0, kCores);
  const std::string kinds = shape.tells_kinds ? "<cpukind cpuset=\"0xf0\" forced_efficiency=\"0\"/>\n"
                                                "<cpukind cpuset=\"0x0f\" forced_efficiency=\"1\"/>\n"
                                              : "";
  std::ofstream(file_) << xml.machine(0xff, shape.two_nodes ? 3 : 1, packages, kinds);
}

}  // namespace topolet::simulate
