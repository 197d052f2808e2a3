#include "core/engine/converge/cpuset_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

namespace topolet::engine {
namespace {

constexpr const char* kCpusFile = "cpuset.cpus";

}  // namespace

std::vector<std::filesystem::path> child_cgroups(const std::filesystem::path& cgroup) {
  std::vector<std::filesystem::path> children;
  std::error_code ended;
  for (std::filesystem::directory_iterator entry(cgroup, ended);
       !ended && entry != std::filesystem::directory_iterator(); entry.increment(ended)) {
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) children.push_back(entry->path());
  }
  return children;
}

std::optional<CpuSet> read_cpu_list(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::string list;
  std::getline(in, list);
  if (in.bad()) return std::nullopt;
  auto cpus = CpuSet::parse(list);
  return cpus ? std::optional(*std::move(cpus)) : std::nullopt;
}

std::optional<CpuSet> read_cpus(const std::filesystem::path& cgroup) { return read_cpu_list(cgroup / kCpusFile); }

Status write_cgroup_file(const std::filesystem::path& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file);
  out << text << '\n' << std::flush;
  if (out) return {};
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  return Error{Code::kInternal, fmt::format("'{}' cannot be written to {}{}", text, file.string(), why)};
}

Status write_cpus(const std::filesystem::path& cgroup, const CpuSet& cpus) {
  return write_cgroup_file(cgroup / kCpusFile, cpus.to_string());
}

/// In v1 the kernel moves memory only where it is told to; in v2 it always does.
Status move_memory(const std::filesystem::path& cgroup, const NodeSet& mems, bool is_v1) {
  if (is_v1) {
    if (Status asked = write_cgroup_file(cgroup / "cpuset.memory_migrate", "1"); !asked) return asked;
  }
  return write_cgroup_file(cgroup / "cpuset.mems", mems.to_string());
}

}  // namespace topolet::engine
