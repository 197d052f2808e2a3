#include "tests/integration/overlap_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace topolet::integration {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks(8);

std::chrono::milliseconds since(Clock::time_point moment) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - moment);
}

}  // namespace

std::string to_string(const Overlap& overlap) {
  return fmt::format("{}: {} ({}) had CPUs {} alone, and {} ({}) ran on {}; for {} ms", overlap.moment,
                     overlap.alone.name, overlap.alone.id, overlap.cpus_alone.to_string(), overlap.other.name,
                     overlap.other.id, overlap.cpus_other.to_string(), overlap.lasted.count());
}

OverlapWatch::OverlapWatch(std::filesystem::path task_directory, std::function<std::string()> moment)
    : tasks_(std::move(task_directory)), moment_(std::move(moment)), thread_([this] { watch(); }) {}

OverlapWatch::~OverlapWatch() {
  ends_ = true;
  thread_.join();
}

void OverlapWatch::stops_being_exclusive(const std::string& container_id) {
  const std::lock_guard lock(mutex_);
  not_alone_.insert(container_id);
}

std::vector<Overlap> OverlapWatch::overlaps() const {
  const std::lock_guard lock(mutex_);
  std::vector<Overlap> all;
  for (const auto& entry : found_) all.push_back(entry.second.first);
  return all;
}

void OverlapWatch::watch() {
  Clock::time_point last = Clock::now();
  while (!ends_) {
    poll();
    ++poll_count_;
    longest_pause_ = std::max(longest_pause_.load(), since(std::exchange(last, Clock::now())));
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void OverlapWatch::poll() {
  tasks_.refresh();
  std::vector<std::pair<const Task*, CpuSet>> running;
  for (const auto& entry : tasks_.containers()) {
    if (auto cpus = cpus_of_running(entry.second)) running.emplace_back(&entry.second, *std::move(cpus));
  }
  for (const auto& alone : running) {
    if (!has_its_cpus_alone(*alone.first, alone.second)) continue;
    for (const auto& other : running) {
      if (other.first != alone.first && other.second.intersects(alone.second)) {
        compare(*alone.first, alone.second, *other.first);
      }
    }
  }
}

bool OverlapWatch::has_its_cpus_alone(const Task& task, const CpuSet& cpus) const {
  const std::lock_guard lock(mutex_);
  return task.whole_cpus == cpus.size() && not_alone_.count(task.id) == 0;
}

/// Notes an overlap. Two readings may never have been true at one moment, so the first must be the same before and
/// after.
void OverlapWatch::compare(const Task& alone, const CpuSet& cpus, const Task& other) {
  const auto before = cpus_of_running(alone);
  const auto meanwhile = cpus_of_running(other);
  const auto after = cpus_of_running(alone);
  if (before != cpus || after != cpus || !meanwhile || !meanwhile->intersects(cpus)) return;
  if (has_its_cpus_alone(alone, cpus)) note(alone, cpus, other, *meanwhile);
}

void OverlapWatch::note(const Task& alone, const CpuSet& cpus_alone, const Task& other, const CpuSet& cpus_other) {
  const std::lock_guard lock(mutex_);
  // Two that both have it alone are one finding.
  if (found_.count({other.id, alone.id}) != 0) return;
  auto [at, is_new] = found_.try_emplace({alone.id, other.id});
  auto& [overlap, first_seen] = at->second;
  if (is_new) {
    first_seen = Clock::now();
    overlap = {alone, other, cpus_alone, cpus_other, moment_(), {}};
  }
  overlap.lasted = since(first_seen);
}

}  // namespace topolet::integration
