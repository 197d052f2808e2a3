#include "core/engine/converge/process_cgroups.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace topolet::engine {
namespace {

/// A line of /proc/PID/cgroup: ID:CONTROLLERS:PATH; that of the unified hierarchy is "0::PATH".
struct CgroupLine {
  std::string controllers;
  std::string path;
};

std::vector<CgroupLine> lines_of_cgroups(const std::filesystem::path& process) {
  std::vector<CgroupLine> lines;
  std::ifstream cgroups(process / "cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    lines.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return lines;
}

/// Returns true if a cgroup is `parent` or below it.
bool is_in(const std::string& cgroup, const std::string& parent) {
  if (cgroup == parent || parent == "/") return true;
  return cgroup.size() > parent.size() && cgroup.compare(0, parent.size(), parent) == 0 && cgroup[parent.size()] == '/';
}

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

/// Returns true if the process is alive. False too for a zombie, whose cgroup does not tell where it runs.
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

/// The path up to the level whose name has the container's id: CID, crio-CID, docker-CID.scope,
/// cri-containerd-CID.scope.
std::optional<std::string> up_to_container(const std::string& cgroup, const std::string& container_id) {
  const auto at = container_id.empty() ? std::string::npos : cgroup.find(container_id);
  if (at == std::string::npos) return std::nullopt;
  return cgroup.substr(0, cgroup.find('/', at));
}

/// The smallest value that counts as no limit, more than any machine has. v1 writes PAGE_COUNTER_MAX, rounded down to a
/// page.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;

std::optional<std::string> first_word_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return word;
}

std::optional<std::int64_t> number_in(const std::string& word) {
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> read_number(const std::filesystem::path& file) {
  const auto word = first_word_of(file);
  return word ? number_in(*word) : std::nullopt;
}

/// A limit; 0 where there is none.
std::optional<std::int64_t> read_limit(const std::filesystem::path& file) {
  const auto word = first_word_of(file);
  if (!word) return std::nullopt;
  if (*word == "max") return 0;
  const auto limit = number_in(*word);
  return limit && *limit >= kNoLimit ? 0 : limit;
}

/// v1, or v2, whichever the directory has.
void read_cpu(const std::filesystem::path& directory, operations::ToldResources& told) {
  told.cpu_shares = read_number(directory / "cpu.shares");
  told.cpu_weight = read_number(directory / "cpu.weight");
  told.cpu_quota_us = read_number(directory / "cpu.cfs_quota_us");
  told.cpu_period_us = read_number(directory / "cpu.cfs_period_us");
  std::ifstream both(directory / "cpu.max");
  std::string quota;
  std::int64_t period = 0;
  if (!(both >> quota >> period)) return;
  told.cpu_quota_us = quota == "max" ? -1 : number_in(quota);
  told.cpu_period_us = period;
}

std::optional<NodeSet> read_mems(const std::filesystem::path& directory) {
  std::ifstream in(directory / "cpuset.mems");
  std::string list;
  std::getline(in, list);
  auto mems = NodeSet::parse(list);
  return in && mems ? std::optional(*std::move(mems)) : std::nullopt;
}

void read_memory(const std::filesystem::path& directory, operations::ToldResources& told) {
  told.memory_limit_bytes = read_limit(directory / "memory.limit_in_bytes");
  if (!told.memory_limit_bytes) told.memory_limit_bytes = read_limit(directory / "memory.max");
}

/// Adds the numbers of a line to those of its nodes: NAME N0=1 N1=2. False if it is not such a line.
bool add_by_node(std::istringstream& words, std::int64_t unit, ProcessCgroups::MemoryByNode& sums) {
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (word[0] != 'N' || equals == std::string::npos) return false;
    const auto node = number_in(word.substr(1, equals - 1));
    const auto amount = number_in(word.substr(equals + 1));
    if (!node || !amount) return false;
    sums[static_cast<std::uint32_t>(*node)] += *amount * unit;
  }
  return true;
}

/// v2 has bytes, with those of the cgroups below: "anon N0=4096 N1=0". v1 has pages: "hierarchical_total=3 N0=1 N1=2".
std::optional<ProcessCgroups::MemoryByNode> read_memory_by_node(const std::filesystem::path& file) {
  static const std::int64_t kPage = ::sysconf(_SC_PAGESIZE);
  ProcessCgroups::MemoryByNode sums;
  bool is_told = false;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const bool is_v1 = name.rfind("hierarchical_total=", 0) == 0;
    if (!is_v1 && name != "anon" && name != "file") continue;
    if (!add_by_node(words, is_v1 ? kPage : 1, sums)) return std::nullopt;
    is_told = true;
  }
  return is_told ? std::optional(std::move(sums)) : std::nullopt;
}

/// hugetlb.2MB.limit_in_bytes, or hugetlb.2MB.max.
void read_huge_pages(const std::filesystem::path& directory, operations::ToldResources& told) {
  constexpr std::string_view kPrefix = "hugetlb.";
  std::map<std::string, std::int64_t> limits;
  std::error_code ended;
  for (std::filesystem::directory_iterator file(directory, ended);
       !ended && file != std::filesystem::directory_iterator(); file.increment(ended)) {
    const std::string name = file->path().filename();
    const auto dot = name.find('.', kPrefix.size());
    if (name.rfind(kPrefix, 0) != 0 || dot == std::string::npos) continue;
    const std::string what = name.substr(dot + 1);
    if (what != "limit_in_bytes" && what != "max") continue;
    const auto limit = read_limit(file->path());
    if (limit && *limit > 0) limits[name.substr(kPrefix.size(), dot - kPrefix.size())] = *limit;
  }
  if (!limits.empty()) told.hugepage_limit_bytes = std::move(limits);
}

}  // namespace

ProcessCgroups::ProcessCgroups(std::filesystem::path proc, std::filesystem::path host_root)
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
    mount.controllers = super_options;
    if (type == "cgroup") legacy_.push_back(mount);
    if (type == "cgroup" && list_contains(super_options, "cpuset") && !cpuset_v1_) cpuset_v1_ = mount;
  }
}

std::optional<CpuSet> ProcessCgroups::effective_cpus(std::int64_t pid) const {
  if (made_up_) return made_up_(pid);
  const std::filesystem::path process = proc_ / std::to_string(pid);
  if (!is_alive(process)) return std::nullopt;
  std::optional<CpuSet> unified;
  for (const CgroupLine& line : lines_of_cgroups(process)) {
    if (cpuset_v1_ && list_contains(line.controllers, "cpuset")) {
      const auto directory = cpuset_directory(line.path);
      return directory ? read_list(*directory / "cpuset.effective_cpus") : std::nullopt;
    }
    if (unified_ && line.controllers.empty()) {
      const auto inside = path_below(line.path, unified_->root);
      if (inside)
        unified =
            read_list(unified_->mount_point / std::filesystem::path(*inside).relative_path() / "cpuset.cpus.effective");
    }
  }
  return unified;
}

std::optional<CpusetHierarchy> ProcessCgroups::hierarchy() const {
  if (cpuset_v1_) return CpusetHierarchy{cpuset_v1_->mount_point, true};
  if (unified_) return CpusetHierarchy{unified_->mount_point, false};
  return std::nullopt;
}

std::optional<std::filesystem::path> ProcessCgroups::quota_hierarchy() const {
  const auto legacy = std::find_if(legacy_.begin(), legacy_.end(),
                                   [](const Mount& mount) { return list_contains(mount.controllers, "cpu"); });
  if (legacy != legacy_.end()) return legacy->mount_point;
  return unified_ ? std::optional(unified_->mount_point) : std::nullopt;
}

std::optional<std::filesystem::path> ProcessCgroups::container_directory(std::int64_t pid,
                                                                         const std::string& container_id) const {
  const std::filesystem::path process = proc_ / std::to_string(pid);
  if (made_up_ || container_id.empty() || !is_alive(process)) return std::nullopt;
  for (const CgroupLine& line : lines_of_cgroups(process)) {
    const bool is_here = cpuset_v1_ ? list_contains(line.controllers, "cpuset") : line.controllers.empty();
    const auto at = line.path.find(container_id);
    if (!is_here || at == std::string::npos) continue;
    const std::string own = line.path.substr(0, line.path.find('/', at));
    if (cpuset_v1_) return cpuset_directory(own);
    const auto inside = unified_ ? path_below(own, unified_->root) : std::nullopt;
    if (inside) return unified_->mount_point / std::filesystem::path(*inside).relative_path();
  }
  return std::nullopt;
}

std::optional<CpuSet> ProcessCgroups::configured_cpus(std::int64_t pid, const std::string& container_id) const {
  if (made_up_configured_) return made_up_configured_(pid);
  const auto cgroup = container_directory(pid, container_id);
  return cgroup ? read_list(*cgroup / "cpuset.cpus") : std::nullopt;
}

std::vector<std::string> ProcessCgroups::cgroups_of(std::int64_t pid) const {
  std::vector<std::string> paths;
  const std::filesystem::path process = proc_ / std::to_string(pid);
  if (!is_alive(process)) return paths;
  for (CgroupLine& line : lines_of_cgroups(process)) {
    if (line.path != "/") paths.push_back(std::move(line.path));
  }
  return paths;
}

operations::ToldResources ProcessCgroups::resources_of(std::int64_t pid, const std::string& container_id) const {
  if (made_up_resources_) return made_up_resources_(pid);
  operations::ToldResources told;
  const std::filesystem::path process = proc_ / std::to_string(pid);
  if (made_up_ || !is_alive(process)) return told;
  for (const CgroupLine& line : lines_of_cgroups(process)) {
    if (!told.qos) told.qos = operations::qos_of_cgroup(line.path);
  }
  told.oom_score_adj = read_number(process / "oom_score_adj");
  if (const auto cpu = directory_of(pid, "cpu", container_id)) read_cpu(*cpu, told);
  if (const auto memory = directory_of(pid, "memory", container_id)) read_memory(*memory, told);
  if (const auto pages = directory_of(pid, "hugetlb", container_id)) read_huge_pages(*pages, told);
  if (const auto cpuset = directory_of(pid, "cpuset", container_id)) told.mems = read_mems(*cpuset);
  return told;
}

std::optional<ProcessCgroups::MemoryByNode> ProcessCgroups::memory_of(std::int64_t pid,
                                                                      const std::string& container_id) const {
  const bool is_here = !made_up_ && !container_id.empty() && is_alive(proc_ / std::to_string(pid));
  const auto memory = is_here ? directory_of(pid, "memory", container_id) : std::nullopt;
  return memory ? read_memory_by_node(*memory / "memory.numa_stat") : std::nullopt;
}

/// The container's own cgroup in the hierarchy with the controller, whatever cgroups it has made below.
std::optional<std::filesystem::path> ProcessCgroups::directory_of(std::int64_t pid, const std::string& controller,
                                                                  const std::string& container_id) const {
  const auto has_controller = [&controller](const Mount& mount) {
    return list_contains(mount.controllers, controller);
  };
  const auto legacy = std::find_if(legacy_.begin(), legacy_.end(), has_controller);
  const bool is_v1 = legacy != legacy_.end();
  if (!is_v1 && !unified_) return std::nullopt;
  const Mount& mount = is_v1 ? *legacy : *unified_;
  for (const CgroupLine& line : lines_of_cgroups(proc_ / std::to_string(pid))) {
    if (is_v1 ? !list_contains(line.controllers, controller) : !line.controllers.empty()) continue;
    if (auto own = own_directory(line.path, mount, container_id)) return own;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> ProcessCgroups::own_directory(const std::string& cgroup, const Mount& mount,
                                                                   const std::string& container_id) {
  const auto own = up_to_container(cgroup, container_id);
  const auto inside = own ? path_below(*own, mount.root) : std::nullopt;
  if (!inside) return std::nullopt;
  return mount.mount_point / std::filesystem::path(*inside).relative_path();
}

std::optional<load::CgroupDirectories> ProcessCgroups::load_directories(std::int64_t pid,
                                                                        const std::string& container_id) const {
  if (made_up_ || container_id.empty() || !is_alive(proc_ / std::to_string(pid))) return std::nullopt;
  load::CgroupDirectories found;
  found.cpu = directory_of(pid, "cpu", container_id).value_or("");
  found.cpuacct = directory_of(pid, "cpuacct", container_id).value_or("");
  found.memory = directory_of(pid, "memory", container_id).value_or("");
  for (const CgroupLine& line : lines_of_cgroups(proc_ / std::to_string(pid))) {
    if (unified_ && line.controllers.empty())
      found.unified = own_directory(line.path, *unified_, container_id).value_or("");
  }
  if (found.cpu.empty() && found.cpuacct.empty()) return std::nullopt;
  return found;
}

std::optional<std::filesystem::path> ProcessCgroups::cpuset_directory(const std::string& cgroup) const {
  const auto inside = path_below(cgroup, cpuset_v1_->root);
  if (!inside) return std::nullopt;
  return cpuset_v1_->mount_point / std::filesystem::path(*inside).relative_path();
}

std::optional<ProcessCgroups::Membership> ProcessCgroups::membership(std::int64_t pid) const {
  Membership found;
  const std::vector<CgroupLine> lines = lines_of_cgroups(proc_ / std::to_string(pid));
  for (const CgroupLine& line : lines) {
    if (list_contains(line.controllers, "cpuset")) found.cpuset = line.path;
  }
  if (found.cpuset.empty()) return std::nullopt;
  // Not every hierarchy need have a cgroup for the container.
  for (const CgroupLine& line : lines) {
    const bool is_deeper = line.path.size() > found.other.size() && is_in(line.path, found.cpuset);
    if (!line.controllers.empty() && is_deeper) found.other = line.path;
  }
  return found;
}

Result<std::size_t> ProcessCgroups::bring_back(std::int64_t pid) const {
  if (!cpuset_v1_ || !is_alive(proc_ / std::to_string(pid))) return std::size_t{0};
  const auto where = membership(pid);
  if (!where || where->cpuset == where->other) return std::size_t{0};
  const auto from = cpuset_directory(where->cpuset);
  const auto home = cpuset_directory(where->other);
  // It takes no process while it has no CPU.
  if (!from || !home || !read_list(*home / "cpuset.cpus")) return std::size_t{0};
  // Some may be born meanwhile.
  std::size_t moved = 0;
  for (int round = 0; round < 3; ++round) {
    const Result<std::size_t> now = move_processes(*from, where->other);
    if (!now) return now;
    if (*now == 0) break;
    moved += *now;
  }
  return moved;
}

Result<std::size_t> ProcessCgroups::move_processes(const std::filesystem::path& from,
                                                   const std::string& container) const {
  std::size_t moved = 0;
  std::ifstream processes(from / "cgroup.procs");
  for (std::int64_t pid = 0; processes >> pid;) {
    const auto where = membership(pid);
    if (!where || !is_in(where->other, container)) continue;
    // A container may have made cgroups of its own.
    std::optional<std::filesystem::path> to = cpuset_directory(where->other);
    if (to && !read_list(*to / "cpuset.cpus")) to = cpuset_directory(container);
    if (!to) continue;
    std::ofstream out(*to / "cgroup.procs");
    out << pid << std::flush;
    if (out) {
      ++moved;
    } else if (is_alive(proc_ / std::to_string(pid))) {
      return Error{Code::kInternal,
                   fmt::format("process {} cannot be put back into its cgroup '{}'", pid, to->string())};
    }
  }
  return moved;
}

}  // namespace topolet::engine
