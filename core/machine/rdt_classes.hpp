// The classes of Intel's Resource Director Technology on this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace topolet::machine {

/// Returns their names, sorted: those of the kernel's groups of class, which a container runtime makes from its own
/// configuration when it starts. None where resctrl is not mounted. Reads directories each time; safe from any thread.
std::vector<std::string> rdt_classes(const std::filesystem::path& resctrl = "/sys/fs/resctrl");

}  // namespace topolet::machine
