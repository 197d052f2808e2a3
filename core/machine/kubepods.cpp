#include "core/machine/kubepods.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "core/topology/kernel_state.hpp"

namespace topolet::machine {
namespace {

namespace fs = std::filesystem;

/// Directories directly below `directory`, by name.
std::vector<fs::path> subdirectories(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Where the pods' cgroup may be below the mount point of a hierarchy, most usual first. systemd puts the names of all
/// its parents into a slice's name.
std::vector<fs::path> candidate_paths(const fs::path& hierarchy) {
  std::vector<fs::path> places = {hierarchy / "kubepods.slice", hierarchy / "kubepods"};
  for (const fs::path& parent : subdirectories(hierarchy)) {
    if (parent.extension() == ".slice") places.push_back(parent / (parent.stem().string() + "-kubepods.slice"));
    places.push_back(parent / "kubepods");
  }
  return places;
}

}  // namespace

Result<std::optional<CpuSet>> kubepods_cpus(const fs::path& cgroup_root) {
  for (const fs::path& hierarchy : {cgroup_root, cgroup_root / "cpuset"}) {
    for (const fs::path& place : candidate_paths(hierarchy)) {
      for (const char* file : {"cpuset.cpus.effective", "cpuset.effective_cpus"}) {
        Result<std::optional<CpuSet>> cpus = topology::read_cpu_list(place / file);
        // An empty set is one that nobody has filled in yet: no task could live there.
        if (!cpus || (cpus->has_value() && !cpus->value().empty())) return cpus;
      }
    }
  }
  return std::optional<CpuSet>();
}

}  // namespace topolet::machine
