// /sys, /proc, /dev and /etc/cdi as a test writes them, in a temporary directory.
#pragma once

#include <filesystem>
#include <string>

#include "plugins/gpu/inventory.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::gpu {

class FakeFiles {
 public:
  FakeFiles() {
    for (const char* root : {"sys", "proc", "dev"}) std::filesystem::create_directory(root_.path() / root);
  }

  Roots roots() const {
    return {root_.path() / "sys",
            root_.path() / "proc",
            root_.path() / "dev",
            {root_.path() / "etc/cdi", root_.path() / "run/cdi"}};
  }

  void write(const std::string& file, const std::string& text) const { root_.write(file, text); }

  void link(const std::string& from, const std::string& to) const {
    const std::filesystem::path link = root_.path() / from;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(to, link);
  }

  /// A PCI function with a device node, as the kernel shows them. `below`: the path from the function's directory on.
  void device(const std::string& type, const std::string& numbers, const std::string& pci,
              const std::string& nodes_below, const std::string& name, int node) const {
    const std::string function = "sys/devices/pci0000:00/0000:00:01.0/" + pci;
    write(function + "/numa_node", std::to_string(node) + "\n");
    write(function + "/" + nodes_below + "/uevent", "MAJOR=1\nDEVNAME=" + name + "\n");
    link("sys/dev/" + type + "/" + numbers, "../../../" + function + "/" + nodes_below);
  }

  std::string path(const std::string& relative) const { return root_.file(relative); }

 private:
  TempDir root_;
};

}  // namespace topolet::gpu
