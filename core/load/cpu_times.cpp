#include "core/load/cpu_times.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <system_error>

namespace topolet::load {
namespace {

/// The columns of a line, as proc(5) names them.
enum Column : std::size_t { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal, kColumns };

/// Takes a number from the front of `text`; false if there is none.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(stopped - text.data()));
  return true;
}

std::optional<CpuTimes> times_in(std::string_view columns) {
  std::array<std::uint64_t, kColumns> values{};
  std::size_t count = 0;
  while (count < values.size() && take_number(columns, values[count])) ++count;
  if (count <= kSoftIrq) return std::nullopt;
  CpuTimes times{.busy = values[kUser] + values[kNice] + values[kSystem] + values[kIrq] + values[kSoftIrq],
                 .steal = std::nullopt};
  if (count > kSteal) times.steal = values[kSteal];
  return times;
}

}  // namespace

std::map<std::uint32_t, CpuTimes> read_cpu_times(std::string_view proc_stat) {
  std::map<std::uint32_t, CpuTimes> all;
  // The lines of CPUs come first; those of interrupts behind them are long.
  while (proc_stat.substr(0, 3) == "cpu") {
    const auto end = proc_stat.find('\n');
    std::string_view line = proc_stat.substr(3, end == std::string_view::npos ? end : end - 3);
    std::uint32_t cpu = 0;
    if (!line.empty() && line.front() != ' ' && take_number(line, cpu)) {
      if (const auto times = times_in(line)) all[cpu] = *times;
    }
    if (end == std::string_view::npos) break;
    proc_stat.remove_prefix(end + 1);
  }
  return all;
}

bool may_have_hypervisor(const std::filesystem::path& proc) {
  std::ifstream file(proc / "cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 5, "flags") == 0) return (line + ' ').find(" hypervisor ") != std::string::npos;
  }
  return true;
}

}  // namespace topolet::load
