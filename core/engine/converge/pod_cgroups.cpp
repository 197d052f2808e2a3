#include "core/engine/converge/pod_cgroups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <vector>

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCpus = "cpuset.cpus";
/// kubepods, its class and the pod, below two cgroups that a kubelet may be told to use.
constexpr int kDeepest = 5;

std::vector<fs::path> children_of(const fs::path& cgroup) {
  std::vector<fs::path> children;
  std::error_code ended;
  for (fs::directory_iterator entry(cgroup, ended); !ended && entry != fs::directory_iterator();
       entry.increment(ended)) {
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) children.push_back(entry->path());
  }
  return children;
}

std::optional<fs::path> find_named(const fs::path& above, const std::string& name, const std::string& name_in_slice,
                                   int levels) {
  if (levels == 0) return std::nullopt;
  const std::vector<fs::path> children = children_of(above);
  for (const fs::path& child : children) {
    const std::string level = child.filename();
    if (level == name || level.find(name_in_slice) != std::string::npos) return child;
  }
  for (const fs::path& child : children) {
    if (auto found = find_named(child, name, name_in_slice, levels - 1)) return found;
  }
  return std::nullopt;
}

CpuSet read_cpus(const fs::path& file) {
  std::ifstream in(file);
  std::string list;
  std::getline(in, list);
  return CpuSet::parse(list).value_or(CpuSet());
}

Status write_cpus(const fs::path& cgroup, const std::string& list) {
  std::ofstream out(cgroup / kCpus);
  out << list << '\n' << std::flush;
  if (out) return {};
  return Error{Code::kInternal, fmt::format("'{}' cannot be written to {}", list, (cgroup / kCpus).string())};
}

/// cgroup v1: a cgroup has all CPUs that those below it have.
Status set_with_all_below(const fs::path& cgroup, const CpuSet& cpus) {
  const CpuSet both = read_cpus(cgroup / kCpus) | cpus;
  if (Status widened = write_cpus(cgroup, both.to_string()); !widened) return widened;
  for (const fs::path& child : children_of(cgroup)) {
    if (Status set = set_with_all_below(child, cpus); !set) return set;
  }
  return write_cpus(cgroup, cpus.to_string());
}

}  // namespace

Result<fs::path> PodCgroups::find(const std::string& pod_uid) const {
  if (!hierarchy_) return Error{Code::kNotFound, "no cgroup hierarchy with cpusets is mounted"};
  std::string in_slice = "pod" + pod_uid;
  std::replace(in_slice.begin(), in_slice.end(), '-', '_');
  const auto found = pod_uid.empty()
                         ? std::nullopt
                         : find_named(hierarchy_->directory, "pod" + pod_uid, "-" + in_slice + ".slice", kDeepest);
  if (found) return *found;
  return Error{Code::kNotFound,
               fmt::format("there is no cgroup of pod {} below {}", pod_uid, hierarchy_->directory.string())};
}

Status PodCgroups::confine(const fs::path& pod, const CpuSet& cpus) const {
  if (cpus.empty()) return Error{Code::kResourceExhausted, "no shared CPU is left"};
  if (hierarchy_->is_v1) return set_with_all_below(pod, cpus);
  if (Status written = write_cpus(pod, cpus.to_string()); !written) return written;
  const CpuSet effective = read_cpus(pod / "cpuset.cpus.effective");
  if (effective.is_subset_of(cpus)) return {};
  return Error{Code::kInternal, fmt::format("the kernel lets {} run on CPUs {} instead of {}", pod.string(),
                                            effective.to_string(), cpus.to_string())};
}

Status PodCgroups::release(const fs::path& pod) const {
  if (hierarchy_->is_v1) return set_with_all_below(pod, read_cpus(pod.parent_path() / kCpus));
  return write_cpus(pod, "");
}

}  // namespace topolet::engine
