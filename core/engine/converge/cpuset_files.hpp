// The files of cgroups: those that say which CPUs they have, and writing to any.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::engine {

/// The cgroups right below one; none where it has ended.
std::vector<std::filesystem::path> child_cgroups(const std::filesystem::path& cgroup);

/// Returns the configured cpuset (cpuset.cpus). Empty if none is configured; none if it cannot be read.
std::optional<CpuSet> read_cpus(const std::filesystem::path& cgroup);
/// A list of CPUs in whatever file.
std::optional<CpuSet> read_cpu_list(const std::filesystem::path& file);
/// Writes one line to a file of a cgroup. The error says what the kernel says.
Status write_cgroup_file(const std::filesystem::path& file, const std::string& text);
/// The error says what the kernel says.
Status write_cpus(const std::filesystem::path& cgroup, const CpuSet& cpus);
/// Sets the memory nodes and has the kernel move the memory that is on others. Blocks until it is there: for seconds if
/// it is much. The error says what the kernel says.
Status move_memory(const std::filesystem::path& cgroup, const NodeSet& mems, bool is_v1);

}  // namespace topolet::engine
