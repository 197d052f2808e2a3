#include "tests/integration/process_cpuset.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace topolet::integration {
namespace {

std::string value_of(const std::string& status, const std::string& key) {
  const std::size_t at = status.find("\n" + key + ":");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size() + 2;
  return status.substr(begin, status.find('\n', begin) - begin);
}

std::string line_of(const std::filesystem::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

bool is_alive(pid_t pid) {
  const std::string stat = line_of(fmt::format("/proc/{}/stat", pid));  // PID (NAME) STATE …
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && std::string("ZX").find(stat[name_end + 2]) == std::string::npos;
}

/// The path of a process in the hierarchy that a line of /proc/PID/cgroup begins with, such as "0::".
std::optional<std::string> cgroup_path(pid_t pid, const std::string& hierarchy) {
  std::ifstream lines(fmt::format("/proc/{}/cgroup", pid));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(hierarchy);
    if (at != std::string::npos) return line.substr(at + hierarchy.size());
  }
  return std::nullopt;
}

const std::filesystem::path kMounted = "/sys/fs/cgroup";

bool is_unified() { return std::filesystem::exists(kMounted / "cgroup.controllers"); }

struct CpusetCgroup {
  std::string path;
  std::filesystem::path directory;
};

/// None for a process that has ended, or is in the root cgroup.
std::optional<CpusetCgroup> cpuset_cgroup_of(pid_t pid) {
  const auto path = cgroup_path(pid, is_unified() ? "0::" : ":cpuset:");
  if (!path || *path == "/" || !is_alive(pid)) return std::nullopt;
  return CpusetCgroup{*path, (is_unified() ? kMounted : kMounted / "cpuset") / path->substr(1)};
}

}  // namespace

Result<ProcessCpuset> parse_allowed(const std::string& status) {
  auto cpus = CpuSet::parse(value_of(status, "Cpus_allowed_list"));
  if (!cpus) return cpus.error();
  auto mems = NodeSet::parse(value_of(status, "Mems_allowed_list"));
  if (!mems) return mems.error();
  if (cpus->empty()) return Error{Code::kInternal, "no Cpus_allowed_list in the status"};
  return ProcessCpuset{*cpus, *mems};
}

Result<ProcessCpuset> allowed_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return Error{Code::kNotFound, fmt::format("there is no process {}", pid)};
  return parse_allowed(text.str());
}

std::optional<CgroupCpus> cgroup_cpus_of(pid_t pid) {
  const auto where = cpuset_cgroup_of(pid);
  if (!where) return std::nullopt;
  const auto cpus =
      CpuSet::parse(line_of(where->directory / (is_unified() ? "cpuset.cpus.effective" : "cpuset.effective_cpus")));
  if (!cpus || cpus->empty()) return std::nullopt;
  return CgroupCpus{where->path, *cpus};
}

bool put_cgroup_on(pid_t pid, const CpuSet& cpus) {
  const auto where = cpuset_cgroup_of(pid);
  if (!where) return false;
  std::ofstream file(where->directory / "cpuset.cpus");
  file << cpus.to_string() << std::flush;
  return file.good();
}

}  // namespace topolet::integration
