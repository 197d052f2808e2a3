#include "core/engine/converge/nested_cpusets.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/engine/converge/cpuset_files.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;

/// Sets a cgroup and those below it: it has all their CPUs at every moment.
Status narrow_to(const fs::path& cgroup, const CpuSet& has, const CpuSet& to) {
  if (!to.is_subset_of(has)) {
    if (Status widened = write_cpus(cgroup, has | to); !widened) return widened;
  }
  if (Status below = narrow_nested(cgroup, to); !below) return below;
  return write_cpus(cgroup, to);
}

}  // namespace

CpuSet nested_cpus(const fs::path& container) {
  CpuSet cpus;
  for (const fs::path& child : child_cgroups(container)) cpus |= read_cpus(child).value_or(CpuSet());
  return cpus;
}

Status narrow_nested(const fs::path& container, const CpuSet& to) {
  const CpuSet above = read_cpus(container).value_or(CpuSet());
  Status first_failure;
  for (const fs::path& child : child_cgroups(container)) {
    const std::optional<CpuSet> has = read_cpus(child);
    if (!has || has->is_subset_of(to)) continue;
    const CpuSet keeps = *has & to;
    const CpuSet wanted = keeps.empty() ? to & above : keeps;
    Status done = wanted.empty() ? Status(Error{Code::kInternal, fmt::format("{} has none of the CPUs {} to go to",
                                                                             child.string(), to.to_string())})
                                 : narrow_to(child, *has, wanted);
    if (!done && first_failure) first_failure = std::move(done);
  }
  return first_failure;
}

Status widen_nested(const fs::path& container, const CpuSet& part, const CpuSet& now) {
  Status first_failure;
  if (part.empty() || part == now) return first_failure;
  for (const fs::path& child : child_cgroups(container)) {
    if (read_cpus(child) != part) continue;
    Status done = write_cpus(child, now);
    if (done) done = widen_nested(child, part, now);
    if (!done && first_failure) first_failure = std::move(done);
  }
  return first_failure;
}

}  // namespace topolet::engine
