#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plugins/gpu/files.hpp"
#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

/// As runtimes have it, which read no other names.
bool is_spec(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".yaml";
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
        if (!text) throw std::invalid_argument("it cannot be read, or is no regular file of at most 16 MiB");
        for (auto& [device, edits] : read_cdi_spec(*text)) registry.devices[device] = std::move(edits);
      } catch (const std::exception& error) {
        constexpr std::size_t kLongestPath = 256;
        registry.faults.push_back("CDI spec " + shown(path, kLongestPath) + ": " + error.what());
      }
    }
  }
  return registry;
}

std::string cdi_stamp(const Roots& roots) {
  std::string stamp;
  for (const std::filesystem::path& directory : roots.cdi) {
    for (const std::string& name : names_in(directory)) {
      if (!is_spec(name)) continue;
      const std::filesystem::path path = directory / name;
      std::error_code error;
      // Two writes within a tick of the file system's clock have one time.
      const std::uintmax_t size = std::filesystem::file_size(path, error);
      stamp += path.string() + ' ' + std::to_string(time_of_change(path)) + ' ' + std::to_string(size) + '\n';
    }
  }
  return stamp;
}

}  // namespace topolet::gpu
