#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plugins/gpu/files.hpp"
#include "plugins/gpu/inventory.hpp"

namespace topolet::gpu {
namespace {

bool is_spec(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".yaml" || extension == ".yml";
}

}  // namespace

CdiRegistry read_cdi(const Roots& roots) {
  CdiRegistry registry;
  for (const std::filesystem::path& directory : roots.cdi) {
    for (const std::string& name : names_in(directory)) {
      if (!is_spec(name)) continue;
      const std::string path = (directory / name).string();
      try {
        const auto text = read_text(path);
        if (!text) throw std::invalid_argument("no regular file of at most 16 MiB");
        for (auto& [device, edits] : read_cdi_spec(*text)) registry.devices[device] = std::move(edits);
      } catch (const std::exception& error) {
        registry.faults.push_back("CDI spec " + path + ": " + error.what());
      }
    }
  }
  return registry;
}

std::string cdi_stamp(const Roots& roots) {
  std::string stamp;
  for (const std::filesystem::path& directory : roots.cdi) {
    for (const std::string& name : names_in(directory)) {
      if (is_spec(name)) stamp += name + ' ' + std::to_string(time_of_change(directory / name)) + '\n';
    }
  }
  return stamp;
}

}  // namespace topolet::gpu
