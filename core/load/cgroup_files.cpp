#include "core/load/cgroup_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace topolet::load {
namespace {

/// Enough for each of these files: cpu.stat has some twenty lines.
using FileBuffer = std::array<char, 4096>;
/// A cgroup gets no file later, but the runtime may put a container into its cgroup some time after it is known.
constexpr int kReadsBetweenOpens = 10;

UniqueFd open_file(const std::filesystem::path& directory, const char* name) {
  if (directory.empty()) return UniqueFd();
  return UniqueFd(::open((directory / name).c_str(), O_RDONLY | O_CLOEXEC));
}

/// From the start of the file. Nothing if it is not open, or cannot be read (any more).
std::optional<std::string_view> read_from(const UniqueFd& fd, FileBuffer& buffer) {
  if (!fd) return std::nullopt;
  const ssize_t size = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  if (size <= 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(size));
}

template <class Number>
std::optional<Number> number_at(std::string_view text) {
  Number number{};
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> read_pressure(const std::filesystem::path& directory, const char* name) {
  FileBuffer buffer;
  const auto text = read_from(open_file(directory, name), buffer);
  return text ? pressure_in(*text) : std::nullopt;
}

std::optional<std::int64_t> read_bytes(const std::filesystem::path& directory, const char* name) {
  FileBuffer buffer;
  const auto text = read_from(open_file(directory, name), buffer);
  return text ? number_at<std::int64_t>(*text) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    const bool is_key = (at == 0 || text[at - 1] == '\n') && end < text.size() && text[end] == ' ';
    if (is_key) return number_at<std::uint64_t>(text.substr(end + 1));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> pressure_in(std::string_view text) {
  constexpr std::string_view kTotal = " total=";
  if (text.substr(0, 5) != "some ") return std::nullopt;
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t at = line.find(kTotal);
  return at == std::string_view::npos ? std::nullopt : number_at<std::uint64_t>(line.substr(at + kTotal.size()));
}

void CgroupFiles::open_cpu_files() {
  if (!cpu_stat_) cpu_stat_ = open_file(directories_.cpu, "cpu.stat");
  if (!cpuacct_usage_) cpuacct_usage_ = open_file(directories_.cpuacct, "cpuacct.usage");
  if (!cpu_pressure_) cpu_pressure_ = open_file(directories_.unified, "cpu.pressure");
  reads_until_open_ = kReadsBetweenOpens;
}

std::optional<CpuCounters> CgroupFiles::read_cpu() {
  if (reads_until_open_-- <= 0) open_cpu_files();
  FileBuffer buffer;
  CpuCounters counters;
  if (const auto stat = read_from(cpu_stat_, buffer)) {
    counters.usage_us = number_after(*stat, "usage_usec");
    counters.throttled = number_after(*stat, "nr_throttled");
  }
  if (!counters.usage_us) {
    const auto usage = read_from(cpuacct_usage_, buffer);
    const auto usage_ns = usage ? number_at<std::uint64_t>(*usage) : std::nullopt;
    if (!usage_ns) return std::nullopt;
    counters.usage_us = *usage_ns / 1000;
  }
  if (const auto pressure = read_from(cpu_pressure_, buffer)) counters.pressure_us = pressure_in(*pressure);
  return counters;
}

MemoryCounters CgroupFiles::read_memory() const {
  MemoryCounters counters;
  counters.bytes = read_bytes(directories_.memory, "memory.current");
  if (!counters.bytes) counters.bytes = read_bytes(directories_.memory, "memory.usage_in_bytes");
  counters.memory_pressure_us = read_pressure(directories_.unified, "memory.pressure");
  counters.io_pressure_us = read_pressure(directories_.unified, "io.pressure");
  FileBuffer buffer;
  if (const auto events = read_from(open_file(directories_.memory, "memory.events"), buffer))
    counters.high_events = number_after(*events, "high");
  return counters;
}

}  // namespace topolet::load
