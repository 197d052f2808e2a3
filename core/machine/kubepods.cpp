#include "core/machine/kubepods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
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

/// Returns the possible paths of the pods' cgroup below the mount point of a hierarchy, most usual first. systemd puts
/// the names of all its parents into a slice's name.
std::vector<fs::path> candidate_paths(const fs::path& hierarchy) {
  std::vector<fs::path> places = {hierarchy / "kubepods.slice", hierarchy / "kubepods"};
  for (const fs::path& parent : subdirectories(hierarchy)) {
    if (parent.extension() == ".slice") places.push_back(parent / (parent.stem().string() + "-kubepods.slice"));
    places.push_back(parent / "kubepods");
  }
  return places;
}

bool is_v1(const fs::path& cgroup) { return fs::exists(cgroup / "cpuset.effective_cpus"); }

bool has_processes(const fs::path& cgroup) {
  std::ifstream in(cgroup / "cgroup.procs");
  return in.peek() != std::ifstream::traits_type::eof();
}

Status add_cpus(const fs::path& cgroup, const CpuSet& cpus) {
  const fs::path file = cgroup / "cpuset.cpus";
  Result<std::optional<CpuSet>> now = topology::read_cpu_list(file);
  if (!now) return now.error();
  if (!now->has_value()) return {};
  const CpuSet all = now->value() | cpus;
  if (all == now->value()) return {};
  std::ofstream out(file);
  out << all.to_string() << std::flush;
  if (!out) return Error{Code::kInternal, fmt::format("cannot write {} to '{}'", all.to_string(), file.string())};
  return {};
}

/// The cgroups above come first, as none may have CPUs that the one above it lacks.
Status add_cpus_below(const fs::path& cgroup, const CpuSet& cpus) {
  for (const fs::path& child : subdirectories(cgroup)) {
    // A container's: the engine sets it.
    if (subdirectories(child).empty() && has_processes(child)) continue;
    if (Status added = add_cpus(child, cpus); !added) return added;
    if (Status added = add_cpus_below(child, cpus); !added) return added;
  }
  return {};
}

}  // namespace

Status give_cpus_back_to_pods(const fs::path& cgroup_root, const CpuSet& cpus) {
  for (const fs::path& hierarchy : {cgroup_root, cgroup_root / "cpuset"}) {
    for (const fs::path& place : candidate_paths(hierarchy)) {
      if (!is_v1(place)) continue;
      fs::path cgroup = hierarchy;
      for (const fs::path& part : place.lexically_relative(hierarchy)) {
        cgroup /= part;
        if (Status added = add_cpus(cgroup, cpus); !added) return added;
      }
      return add_cpus_below(place, cpus);
    }
  }
  return {};
}

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
