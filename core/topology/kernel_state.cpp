#include "core/topology/kernel_state.hpp"

#include <fstream>
#include <string>

namespace topolet::topology {

Result<std::optional<CpuSet>> read_cpu_list(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!in) return std::optional<CpuSet>();
  std::getline(in, line);
  // Kernels with CPUMASK_OFFSTACK print a mask that was never allocated like this.
  if (line == "(null)") return std::optional<CpuSet>(CpuSet());
  Result<CpuSet> list = CpuSet::parse(line);
  if (!list) return Error{Code::kInternal, file.string() + ": " + list.error().message};
  return std::optional<CpuSet>(*std::move(list));
}

Result<KernelState> read_kernel_state(const std::filesystem::path& sysfs_root) {
  const std::filesystem::path cpu = sysfs_root / "devices/system/cpu";
  Result<std::optional<CpuSet>> online = read_cpu_list(cpu / "online");
  if (!online) return online.error();
  Result<std::optional<CpuSet>> present = read_cpu_list(cpu / "present");
  if (!present) return present.error();
  Result<std::optional<CpuSet>> isolated = read_cpu_list(cpu / "isolated");
  if (!isolated) return isolated.error();
  return KernelState{*std::move(online), present->value_or(CpuSet()), isolated->value_or(CpuSet())};
}

}  // namespace topolet::topology
