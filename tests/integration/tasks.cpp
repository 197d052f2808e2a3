#include "tests/integration/tasks.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/integration/process_cpuset.hpp"

namespace topolet::integration {
namespace {

constexpr std::size_t kSharesOfACpu = 1024;

std::string annotation(const nlohmann::json& spec, const char* name) {
  return spec.value("/annotations"_json_pointer, nlohmann::json::object())
      .value(std::string("io.kubernetes.cri.") + name, std::string());
}

/// As the kubelet names cgroups: only those of Guaranteed pods have no level of their class.
bool is_guaranteed(const nlohmann::json& spec) {
  const std::string path = spec.value("/linux/cgroupsPath"_json_pointer, std::string());
  return path.find("kubepods") != std::string::npos && path.find("burstable") == std::string::npos &&
         path.find("besteffort") == std::string::npos;
}

std::size_t whole_cpus(const nlohmann::json& spec) {
  const auto shares = spec.value("/linux/resources/cpu/shares"_json_pointer, std::size_t{0});
  return is_guaranteed(spec) && shares % kSharesOfACpu == 0 ? shares / kSharesOfACpu : 0;
}

/// runc's own program until the container's one takes its place at the start.
bool is_only_made(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
  return name.rfind("runc:[", 0) == 0;
}

/// Null while the bundle is not complete.
nlohmann::json spec_in(const std::filesystem::path& bundle) {
  std::ifstream file(bundle / "config.json");
  auto spec = nlohmann::json::parse(file, nullptr, false);
  return spec.is_object() ? spec : nlohmann::json();
}

/// runc writes it when the process is in its cgroup and that has its cpuset.
pid_t pid_in(const std::filesystem::path& bundle) {
  pid_t pid = 0;
  std::ifstream(bundle / "init.pid") >> pid;
  return pid;
}

}  // namespace

std::optional<CpuSet> cpus_of_running(const Task& task) {
  const auto cgroup = cgroup_cpus_of(task.pid);
  // The PID may be another process's by now, but never one in this cgroup.
  if (!cgroup || cgroup->path.find(task.id) == std::string::npos || is_only_made(task.pid)) return std::nullopt;
  return cgroup->cpus;
}

void Tasks::refresh() {
  std::set<std::string> there;
  std::error_code gone;  // the directory, or what is in it; then it is read again next time
  for (std::filesystem::directory_iterator bundle(directory_, gone), end; !gone && bundle != end;
       bundle.increment(gone)) {
    const std::string id = bundle->path().filename().string();
    there.insert(id);
    if (known_.count(id) != 0) continue;
    const nlohmann::json spec = spec_in(bundle->path());
    const pid_t pid = pid_in(bundle->path());
    if (spec.is_null() || pid == 0) continue;
    const bool is_container = annotation(spec, "container-type") == "container";
    known_.insert(id);
    if (!is_container) continue;
    const std::string name = annotation(spec, "sandbox-name") + "/" + annotation(spec, "container-name");
    containers_[id] = Task{id, name, pid, whole_cpus(spec)};
  }
  if (gone) return;
  std::erase_if(known_, [&](const std::string& id) { return there.count(id) == 0; });
  std::erase_if(containers_, [&](const auto& entry) { return there.count(entry.first) == 0; });
}

}  // namespace topolet::integration
