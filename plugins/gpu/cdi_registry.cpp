#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plugins/gpu/files.hpp"
#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

/// Runtimes read files with these extensions only.
bool is_spec(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".yaml";
}

}  // namespace

CdiRegistry read_cdi(const Roots& roots) {
  CdiRegistry registry;
  for (const std::filesystem::path& directory : roots.cdi) {
    for (const std::string& name : list_directory(directory)) {
      if (!is_spec(name)) continue;
      const std::string path = (directory / name).string();
      try {
        const auto text = read_file(path);
        if (!text) throw std::invalid_argument("cannot be read; it must be a regular file of at most 16 MiB");
        for (auto& [device, edits] : read_cdi_spec(*text)) registry.devices[device] = std::move(edits);
      } catch (const std::exception& error) {
        constexpr std::size_t kMaxLength = 256;
        registry.errors.push_back("CDI spec " + printable(path, kMaxLength) + ": " + error.what());
      }
    }
  }
  return registry;
}

std::string cdi_fingerprint(const Roots& roots) {
  std::string stamp;
  for (const std::filesystem::path& directory : roots.cdi) {
    for (const std::string& name : list_directory(directory)) {
      if (!is_spec(name)) continue;
      const std::filesystem::path path = directory / name;
      std::error_code error;
      // Two writes within one tick of the file system's clock have the same time.
      const std::uintmax_t size = std::filesystem::file_size(path, error);
      stamp += path.string() + ' ' + std::to_string(modified_ns(path)) + ' ' + std::to_string(size) + '\n';
    }
  }
  return stamp;
}

}  // namespace topolet::gpu
