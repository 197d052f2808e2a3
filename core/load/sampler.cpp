#include "core/load/sampler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

namespace topolet::load {
namespace {

/// Between two rounds that are a second apart: for longer, the machine was suspended, or this thread did not run.
constexpr std::chrono::seconds kLongestInterval{3};
/// So much the two clocks may differ over one interval: one of them stands still while the machine is suspended.
constexpr std::chrono::seconds kLongestSlip{1};
/// After this, what was measured before says nothing about now.
constexpr std::chrono::seconds kForgottenAfter{60};
constexpr std::chrono::seconds kMemoryEvery{10};
constexpr std::chrono::seconds kLookAgainAfter{5};
constexpr std::int64_t kMiB = 1 << 20;

/// To 1 % of a CPU, or of the time.
std::int64_t rounded(double thousandths) { return std::llround(thousandths / 10) * 10; }

std::int64_t rounded_to_mib(std::int64_t bytes) { return (bytes + kMiB / 2) / kMiB * kMiB; }

/// Of a counter of microseconds.
std::optional<std::uint32_t> permille_of(const CounterWindow& window) {
  const auto us = window.per_second();
  if (!us) return std::nullopt;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(rounded(*us / 1000), 0, 1000));
}

void add(CounterWindow& window, std::chrono::steady_clock::time_point now, const std::optional<std::uint64_t>& value) {
  if (value) {
    window.add(now, *value);
  } else {
    window.restart();
  }
}

double ticks_per_second() {
  static const double kTicks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return kTicks;
}

std::chrono::duration<double> seconds_of(std::uint64_t ticks) {
  return std::chrono::duration<double>(static_cast<double>(ticks) / ticks_per_second());
}

std::chrono::milliseconds age_of(std::chrono::steady_clock::time_point at, std::chrono::steady_clock::time_point now) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - at);
}

/// Reads a file of the kernel whole into `text`, whose memory is used again. Returns what is wrong.
std::string read_whole(const UniqueFd& fd, std::string& text) {
  if (text.size() < 16384) text.resize(16384);
  std::size_t size = 0;
  while (true) {
    const ssize_t part = ::pread(fd.get(), text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (part < 0) return std::strerror(errno);
    if (part == 0) break;
    size += static_cast<std::size_t>(part);
    if (size == text.size()) text.resize(2 * size);
  }
  text[size] = '\0';
  return size == 0 ? "it is empty" : "";
}

}  // namespace

Sampler::Sampler(Deps deps) : deps_(std::move(deps)), has_hypervisor_(may_have_hypervisor(deps_.proc)) {}

Sample Sampler::sample(const Subjects& subjects) {
  const Time now = deps_.clock.steady();
  drop_interval_unless_steady(now);
  Sample sample;
  sample.taken_at = now;
  sample.error = read_cpus(now);
  read_containers(subjects.containers, now);
  sample.load = load_of(subjects.nodes, now);
  sample.measured_for = age_of(*first_, now);
  sample.tells_steal = tells_steal_;
  sample.has_hypervisor = has_hypervisor_;
  sample.load.measured_for = std::min<std::chrono::milliseconds>(sample.measured_for, kLongestTold);
  last_ = now;
  return sample;
}

void Sampler::drop_interval_unless_steady(Time now) {
  const std::chrono::milliseconds wall = deps_.clock.wall();
  const auto passed = last_ ? age_of(*last_, now) : std::chrono::milliseconds(0);
  const auto slip = last_ ? (wall - last_wall_) - passed : std::chrono::milliseconds(0);
  last_wall_ = wall;
  if (!first_ || passed > kForgottenAfter) first_ = now;
  if (passed <= kLongestInterval && slip <= kLongestSlip && slip >= -kLongestSlip) return;
  if (passed > kForgottenAfter) {
    cpus_.clear();
    containers_.clear();
  }
  for (auto& [os_index, cpu] : cpus_) cpu.busy.restart();
  for (auto& [id, container] : containers_) {
    for (CounterWindow* window : {&container.usage, &container.throttled, &container.cpu_pressure,
                                  &container.memory_pressure, &container.io_pressure, &container.memory_high})
      window->restart();
  }
}

std::string Sampler::read_cpus(Time now) {
  const std::filesystem::path file = deps_.proc / "stat";
  if (!stat_) stat_.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string wrong = stat_ ? read_whole(stat_, stat_text_) : std::string(std::strerror(errno));
  if (!wrong.empty()) {
    stat_.reset();
    cpus_.clear();
    return fmt::format("{} cannot be read: {}", file.string(), wrong);
  }
  const std::map<std::uint32_t, CpuTimes> times = read_cpu_times(stat_text_.c_str());
  std::erase_if(cpus_, [&times](const auto& cpu) { return !times.contains(cpu.first); });
  for (const auto& [os_index, of_cpu] : times) add_cpu(os_index, of_cpu, now);
  return times.empty() ? fmt::format("{} tells of no CPU", file.string()) : std::string();
}

void Sampler::add_cpu(std::uint32_t os_index, const CpuTimes& times, Time now) {
  Cpu& cpu = cpus_[os_index];
  tells_steal_ = tells_steal_ || times.steal.value_or(0) > 0;
  const bool goes_on = cpu.busy.has_readings() && times.busy >= cpu.last.busy && times.steal && cpu.last.steal &&
                       *times.steal >= *cpu.last.steal;
  if (goes_on)
    cpu.stolen.add(now - *last_, seconds_of(times.busy - cpu.last.busy), seconds_of(*times.steal - *cpu.last.steal));
  cpu.busy.add(now, times.busy);
  cpu.last = times;
}

void Sampler::read_containers(const std::vector<RunningContainer>& running, Time now) {
  std::set<std::string_view> ids;
  for (const RunningContainer& container : running) ids.insert(container.id);
  std::erase_if(containers_, [&ids](const auto& container) { return !ids.contains(container.first); });
  for (const RunningContainer& container : running) read_container(container, containers_[container.id], now);
}

void Sampler::read_container(const RunningContainer& running, Container& container, Time now) {
  if (!container.files && now >= container.look_again_at) {
    container.look_again_at = now + kLookAgainAfter;
    if (auto directories = deps_.find_cgroup(running)) container.files.emplace(*std::move(directories));
  }
  const auto counters = container.files ? container.files->read_cpu() : std::nullopt;
  if (!counters) return container.files.reset();
  add(container.usage, now, counters->usage_us);
  add(container.throttled, now, counters->throttled);
  add(container.cpu_pressure, now, counters->pressure_us);
  if (now >= container.read_memory_at) read_memory(container, now);
  const auto used_us = container.usage.per_second();
  if (!used_us) return;
  container.load.cpu_milli = rounded(*used_us / 1000);
  container.load.psi_some_permille = permille_of(container.cpu_pressure);
  container.load.is_throttled = container.throttled.per_second().value_or(0) > 0;
  container.measured_at = now;
}

void Sampler::read_memory(Container& container, Time now) {
  container.read_memory_at = now + kMemoryEvery;
  const MemoryCounters counters = container.files->read_memory();
  add(container.memory_pressure, now, counters.memory_pressure_us);
  add(container.io_pressure, now, counters.io_pressure_us);
  container.load.memory_bytes = counters.bytes ? std::optional(rounded_to_mib(*counters.bytes)) : std::nullopt;
  container.load.memory_psi_permille = permille_of(container.memory_pressure);
  container.load.io_psi_permille = permille_of(container.io_pressure);
  add(container.memory_high, now, counters.high_events);
  const auto per_second = container.memory_high.per_second();
  container.load.memory_high_per_minute =
      per_second ? std::optional(static_cast<std::uint32_t>(std::ceil(*per_second * 60))) : std::nullopt;
}

CpuLoad Sampler::load_of_cpu(const Cpu& cpu) const {
  CpuLoad load;
  if (knows_steal()) load.effective_milli = rounded(static_cast<double>(cpu.stolen.effective_milli()));
  if (const auto ticks = cpu.busy.per_second())
    load.used_milli = std::min<std::int64_t>(1000, rounded(*ticks / ticks_per_second() * 1000));
  return load;
}

/// A CPU that is not online is none of the node's. One that has just come has used nothing that is known.
NodeLoad Sampler::load_of_node(const CpuSet& cpus, const std::map<std::uint32_t, CpuLoad>& loads) const {
  NodeLoad node;
  std::int64_t effective = 0;
  std::int64_t used = 0;
  bool is_used_known = true;
  bool has_any = false;
  for (const std::uint32_t cpu : cpus) {
    const auto load = loads.find(cpu);
    if (load == loads.end()) continue;
    has_any = true;
    effective += load->second.effective_milli.value_or(0);
    used += load->second.used_milli.value_or(0);
    is_used_known = is_used_known && load->second.used_milli.has_value();
  }
  if (has_any && knows_steal()) node.effective_milli = effective;
  if (has_any && is_used_known) node.used_milli = used;
  return node;
}

Load Sampler::load_of(const std::map<std::uint32_t, CpuSet>& nodes, Time now) const {
  Load load;
  for (const auto& [os_index, cpu] : cpus_) load.cpus[os_index] = load_of_cpu(cpu);
  for (const auto& [os_index, cpus] : nodes) {
    const NodeLoad node = load_of_node(cpus, load.cpus);
    if (node.effective_milli || node.used_milli) load.nodes[os_index] = node;
  }
  for (const auto& [id, container] : containers_) {
    if (!container.measured_at) continue;
    ContainerLoad& measured = load.containers[id] = container.load;
    measured.age = age_of(*container.measured_at, now);
  }
  return load;
}

}  // namespace topolet::load
