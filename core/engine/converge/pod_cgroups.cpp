#include "core/engine/converge/pod_cgroups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/engine/converge/cpuset_files.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;

/// kubepods, its class and the pod, below cgroups that a kubelet may be told to use, or that a node is in which runs in
/// a container itself.
constexpr int kDeepest = 10;

/// "podUID", or in a slice "kubepods-burstable-podUID.slice".
bool is_of_a_pod(const std::string& level) {
  const bool is_named_so = level.rfind("pod", 0) == 0 && level.size() > 3 && level.find('.') == std::string::npos;
  return is_named_so || (level.find("-pod") != std::string::npos && level.ends_with(".slice"));
}

std::optional<fs::path> find_named(const fs::path& above, const std::string& name, const std::string& name_in_slice,
                                   int levels) {
  if (levels == 0) return std::nullopt;
  const std::vector<fs::path> children = child_cgroups(above);
  for (const fs::path& child : children) {
    const std::string level = child.filename();
    if (level == name || level.find(name_in_slice) != std::string::npos) return child;
  }
  for (const fs::path& child : children) {
    // A cgroup inside another pod's is not this kubelet's.
    if (is_of_a_pod(child.filename())) continue;
    if (auto found = find_named(child, name, name_in_slice, levels - 1)) return found;
  }
  return std::nullopt;
}

/// cgroup v1: a cgroup has all CPUs that those below it have.
Status set_with_all_below(const fs::path& cgroup, const CpuSet& cpus) {
  const std::optional<CpuSet> before = read_cpus(cgroup);
  if (Status widened = write_cpus(cgroup, before.value_or(CpuSet()) | cpus); !widened) return widened;
  for (const fs::path& child : child_cgroups(cgroup)) {
    if (Status set = set_with_all_below(child, cpus); !set) return set;
  }
  return write_cpus(cgroup, cpus);
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
  if (Status written = write_cpus(pod, cpus); !written) return written;
  const std::optional<CpuSet> effective = read_cpu_list(pod / "cpuset.cpus.effective");
  if (!effective || effective->empty()) {
    return Error{Code::kInternal, fmt::format("it cannot be read on which CPUs the kernel lets {} run", pod.string())};
  }
  if (effective->is_subset_of(cpus)) return {};
  return Error{Code::kInternal, fmt::format("the kernel lets {} run on CPUs {} instead of {}", pod.string(),
                                            effective->to_string(), cpus.to_string())};
}

Status PodCgroups::release(const fs::path& pod) const {
  if (!hierarchy_->is_v1) return write_cpus(pod, {});
  const std::optional<CpuSet> above = read_cpus(pod.parent_path());
  if (above && !above->empty()) return set_with_all_below(pod, *above);
  return Error{Code::kInternal, fmt::format("it cannot be read which CPUs {} has", pod.parent_path().string())};
}

}  // namespace topolet::engine
