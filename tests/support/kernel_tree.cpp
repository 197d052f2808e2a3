#include "tests/support/kernel_tree.hpp"

#include <fstream>
#include <utility>

namespace topolet::testing {
namespace {

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

}  // namespace

KernelTree::KernelTree(std::filesystem::path root, const CpuSet& all_cpus) : root_(std::move(root)) {
  write(root_ / "proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
  write(root_ / "sys/fs/cgroup/cpuset.cpus.effective", all_cpus.to_string());
}

std::string KernelTree::path_of(std::int64_t pid) const {
  const auto own = own_paths_.find(pid);
  return own == own_paths_.end() ? "/kubepods/" + std::to_string(pid) : own->second;
}

std::filesystem::path KernelTree::cgroup_of(std::int64_t pid) const {
  return root_ / "sys/fs/cgroup" / std::filesystem::path(path_of(pid)).relative_path();
}

void KernelTree::put_process(std::int64_t pid, const std::string& cgroup, char state) {
  const std::filesystem::path process = root_ / "proc" / std::to_string(pid);
  write(process / "cgroup", "0::" + cgroup);
  write(process / "stat", std::to_string(pid) + " (sh) " + state + " 1");
}

void KernelTree::run_on(std::int64_t pid, const CpuSet& cpus) {
  write(cgroup_of(pid) / "cpuset.cpus.effective", cpus.to_string());
  put_process(pid, path_of(pid), 'S');
}

void KernelTree::run_in(std::int64_t pid, const std::string& cgroup, const std::map<std::string, std::string>& files) {
  own_paths_[pid] = cgroup;
  for (const auto& [file, content] : files) write(cgroup_of(pid) / file, content);
  put_process(pid, cgroup, 'S');
}

void KernelTree::run_settable(std::int64_t pid, const std::string& cgroup, const CpuSet& cpus) {
  run_in(pid, cgroup, {{"cpuset.cpus", cpus.to_string()}});
  const std::filesystem::path effective = cgroup_of(pid) / "cpuset.cpus.effective";
  std::filesystem::remove(effective);
  std::filesystem::create_symlink("cpuset.cpus", effective);
}

void KernelTree::leave_zombie(std::int64_t pid) {
  put_process(pid, "/", 'Z');
  std::filesystem::remove_all(cgroup_of(pid));
}

void KernelTree::reap(std::int64_t pid) {
  std::filesystem::remove_all(root_ / "proc" / std::to_string(pid));
  std::filesystem::remove_all(cgroup_of(pid));
}

}  // namespace topolet::testing
