#include "core/engine/converge/cgroup_reader.hpp"

#include <fstream>
#include <sstream>
#include <utility>

namespace topolet::engine {
namespace {

bool list_contains(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

std::optional<CpuSet> read_list(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string list;
  if (!std::getline(in, list)) return std::nullopt;
  auto cpus = CpuSet::parse(list);
  if (!cpus || cpus->empty()) return std::nullopt;
  return *std::move(cpus);
}

/// False too for a zombie, whose cgroup says nothing of what runs.
bool is_alive(const std::filesystem::path& process) {
  std::ifstream in(process / "stat");
  std::string stat;
  // PID (NAME) STATE …, where the name may hold any byte; see proc(5).
  std::getline(in, stat, '\0');
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 == stat.size()) return false;
  const char state = stat[name_end + 2];
  return state != 'Z' && state != 'X';
}

/// A cgroup path as it shows under a mount of `root`; none if it lies outside, or is that of no cgroup in particular.
std::optional<std::string> path_below(const std::string& cgroup, const std::string& root) {
  if (cgroup == "/") return std::nullopt;
  if (root == "/") return cgroup;
  if (cgroup.compare(0, root.size(), root) != 0) return std::nullopt;
  return cgroup.substr(root.size());
}

}  // namespace

CgroupReader::CgroupReader(std::filesystem::path proc, std::filesystem::path host_root)
    : proc_(std::move(proc)), host_root_(std::move(host_root)) {
  // A line: ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAGS…] - TYPE SOURCE SUPEROPTIONS; see proc(5).
  std::ifstream mounts(proc_ / "self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash));
    std::istringstream tail(line.substr(dash + 3));
    std::string skip;
    std::string at;
    Mount mount;
    head >> skip >> skip >> skip >> mount.root >> at;
    std::string type;
    std::string super_options;
    tail >> type >> skip >> super_options;
    mount.mount_point = host_root_ / std::filesystem::path(at).relative_path();
    if (type == "cgroup2" && !unified_) unified_ = mount;
    if (type == "cgroup" && list_contains(super_options, "cpuset") && !cpuset_v1_) cpuset_v1_ = mount;
  }
}

std::optional<CpuSet> CgroupReader::effective_cpus(std::int64_t pid) const {
  const std::filesystem::path process = proc_ / std::to_string(pid);
  if (!is_alive(process)) return std::nullopt;
  std::ifstream cgroups(process / "cgroup");
  std::optional<CpuSet> unified;
  for (std::string line; std::getline(cgroups, line);) {
    // ID:CONTROLLERS:PATH; the unified hierarchy is "0::PATH".
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (cpuset_v1_ && list_contains(controllers, "cpuset")) {
      const auto inside = path_below(path, cpuset_v1_->root);
      if (!inside) return std::nullopt;
      return read_list(cpuset_v1_->mount_point / std::filesystem::path(*inside).relative_path() /
                       "cpuset.effective_cpus");
    }
    if (unified_ && controllers.empty()) {
      const auto inside = path_below(path, unified_->root);
      if (inside)
        unified =
            read_list(unified_->mount_point / std::filesystem::path(*inside).relative_path() / "cpuset.cpus.effective");
    }
  }
  return unified;
}

}  // namespace topolet::engine
