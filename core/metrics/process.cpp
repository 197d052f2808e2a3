#include "core/metrics/process.hpp"

#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "core/base/resident_memory.hpp"
#include "core/metrics/table.hpp"

namespace topolet::metrics {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::optional<double> cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/// Without the one by which they are counted.
std::optional<double> open_descriptors() {
  std::error_code failed;
  std::filesystem::directory_iterator found("/proc/self/fd", failed);
  double count = -1;
  for (const std::filesystem::directory_iterator end; !failed && found != end; found.increment(failed)) ++count;
  if (failed) return std::nullopt;
  return count;
}

std::optional<double> most_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

std::vector<prometheus::MetricFamily> process_families(const std::string& prefix) {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, std::optional<double> value,
                       prometheus::MetricType type = prometheus::MetricType::Gauge) {
    if (value) families.push_back(Table(prefix + name, help, type).add(*value).family());
  };
  const auto resident = static_cast<double>(resident_bytes());
  add("process_resident_memory_bytes", "What the process has in RAM.",
      resident > 0 ? std::optional(resident) : std::nullopt);
  add("process_cpu_seconds_total", "CPU time of the process.", cpu_seconds(), prometheus::MetricType::Counter);
  add("process_open_fds", "Descriptors that the process has open.", open_descriptors());
  add("process_max_fds", "Descriptors that the process may have open.", most_descriptors());
  return families;
}

}  // namespace topolet::metrics
