#include "tests/fuzz/kernel_files_properties.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/converge/process_cgroups.hpp"
#include "core/machine/kubepods.hpp"
#include "core/topology/kernel_state.hpp"
#include "plugins/gpu/text.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet {
namespace {

using Indices = std::set<std::uint32_t>;

constexpr std::int64_t kProcess = 77;

struct KernelFiles {
  std::string list;
  std::string mountinfo;
  std::string stat;
  std::string cgroup;
};

KernelFiles files_of(std::string text) {
  std::array<std::string, 4> parts;
  for (std::string& part : parts) {
    const std::string separator = "\n---\n";
    const auto end = std::min(text.find(separator), text.size());
    part = text.substr(0, end);
    text.erase(0, end + separator.size());
  }
  return {parts[0], parts[1], parts[2], parts[3]};
}

std::string without_space(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<std::uint32_t> plain_number(const std::string& digits) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = std::min<std::uint64_t>(number * 10 + static_cast<std::uint64_t>(c - '0'), kMaxOsIndex + 1);
  }
  if (digits.empty() || number > kMaxOsIndex) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

std::optional<Indices> plain_list(const std::string& text) {
  Indices indices;
  const std::string list = without_space(text);
  if (list.empty()) return indices;
  for (const std::string& part : parts_of(list, ',')) {
    const std::vector<std::string> ends = parts_of(without_space(part), '-');
    const auto first = plain_number(ends.front());
    const auto last = plain_number(ends.back());
    if (ends.size() > 2 || !first || !last || *last < *first) return std::nullopt;
    for (std::uint32_t index = *first; index <= *last; ++index) indices.insert(index);
  }
  return indices;
}

template <class Set>
bool same(const Set& set, const Indices& indices) {
  return std::equal(set.begin(), set.end(), indices.begin(), indices.end());
}

std::string list_violation(const std::string& text) {
  const auto expected = plain_list(text);
  const auto read = CpuSet::parse(text);
  if (read.has_value() != expected.has_value()) return "a CPU list is refused or accepted against the rules";
  if (!read) return read.error().message.empty() ? "an error without a message" : "";
  if (!same(*read, *expected)) return "a CPU list is read as another";
  const auto again = CpuSet::parse(read->to_string());
  if (!again || *again != *read) return "written out, a CPU list is read as another: " + read->to_string();
  // This one skips what the other refuses.
  return same(gpu::parse_cpu_list(text).indices(), *expected) ? "" : "the gpu plugin reads another CPU list";
}

bool ended(const std::string& stat) {
  const std::string text = stat.substr(0, stat.find('\0'));
  const auto name_end = text.rfind(") ");
  const char state = name_end == std::string::npos ? '\0' : text.c_str()[name_end + 2];
  return state == '\0' || state == 'Z' || state == 'X';
}

/// A machine below a temporary directory that has the list in every file of CPUs.
class Machine {
 public:
  void write(const KernelFiles& files) const {
    for (const char* path :
         {"sys/devices/system/cpu/online", "sys/devices/system/cpu/isolated",
          "host/sys/fs/cgroup/kubepods/cpuset.cpus.effective", "host/sys/fs/cgroup/kubepods/pod1/cpuset.cpus.effective",
          "host/sys/fs/cgroup/cpuset/kubepods/pod1/cpuset.effective_cpus"}) {
      replace(path, files.list);
    }
    replace("proc/self/mountinfo", files.mountinfo);
    replace("proc/77/stat", files.stat);
    replace("proc/77/cgroup", files.cgroup);
  }

  std::filesystem::path path(const char* below) const { return directory_.path() / below; }

 private:
  /// By a new file, because ext4 takes milliseconds to close one that was emptied and written again.
  void replace(const char* path, const std::string& text) const {
    std::filesystem::remove(directory_.path() / path);
    directory_.write(path, text);
  }

  TempDir directory_;
};

std::string machine_violation(const Machine& machine, const KernelFiles& files) {
  const std::string line = files.list.substr(0, files.list.find('\n'));
  const auto expected = line == "(null)" ? std::optional(Indices()) : plain_list(line);
  const auto kernel = topology::read_kernel_state(machine.path("sys"));
  if (kernel.has_value() != expected.has_value()) return "the online CPUs are refused or accepted against the rules";
  if (kernel && !(kernel->online && same(*kernel->online, *expected) && same(kernel->isolated, *expected)))
    return "other CPUs are online or isolated";
  const auto pods = machine::kubepods_cpus(machine.path("host/sys/fs/cgroup"));
  if (pods.has_value() != expected.has_value()) return "the CPUs of all pods are refused or accepted against the rules";
  if (pods && !(*pods ? same(**pods, *expected) : expected->empty())) return "other CPUs are those of all pods";

  // A path with ".." may lead to the files of this host.
  const bool leads_out = (files.mountinfo + files.cgroup).find("..") != std::string::npos;
  const engine::ProcessCgroups reader(machine.path("proc"), machine.path("host"));
  const auto process = reader.effective_cpus(kProcess);
  if (process && ended(files.stat)) return "a process that has ended is found on CPUs";
  if (process && !leads_out && !(expected && !expected->empty() && same(*process, *expected)))
    return "a process is found on other CPUs";
  return {};
}

}  // namespace

TextJudgement judge_kernel_files(const std::string& text) {
  static const Machine kMachine;
  const KernelFiles files = files_of(text);
  TextJudgement result{.accepted = CpuSet::parse(files.list).has_value(), .violation = list_violation(files.list)};
  if (!result.violation.empty()) return result;
  kMachine.write(files);
  result.violation = machine_violation(kMachine, files);
  return result;
}

}  // namespace topolet
