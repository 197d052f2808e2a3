// Looks all the time for two running containers on one CPU that one of them should have alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "tests/integration/tasks.hpp"

namespace topolet::integration {

/// Two containers that ran on one CPU though one of them had it alone.
struct Overlap {
  Task alone;
  Task other;
  CpuSet cpus_alone;
  CpuSet cpus_other;
  std::string moment;                   ///< when it was first seen, in the words of the watch's owner
  std::chrono::milliseconds lasted{0};  ///< until it was last seen
};

std::string to_string(const Overlap& overlap);

/// A Guaranteed container that asked for whole CPUs has them alone once the kernel gives it exactly so many. Knows the
/// containers from containerd and their CPUs from the kernel; asks topolet nothing. Safe from any thread.
class OverlapWatch {
 public:
  /// `moment` says what has just happened; it is called on the watch's thread.
  OverlapWatch(std::filesystem::path task_directory, std::function<std::string()> moment);
  ~OverlapWatch();
  OverlapWatch(const OverlapWatch&) = delete;
  OverlapWatch& operator=(const OverlapWatch&) = delete;

  /// To be said before a resize by which a container gives up what it has alone.
  void stops_being_exclusive(const std::string& container_id);

  std::vector<Overlap> overlaps() const;
  std::size_t poll_count() const { return poll_count_; }
  std::chrono::milliseconds longest_pause() const { return longest_pause_; }

 private:
  void watch();
  void poll();
  bool has_its_cpus_alone(const Task& task, const CpuSet& cpus) const;
  void compare(const Task& alone, const CpuSet& cpus, const Task& other);
  void note(const Task& alone, const CpuSet& cpus_alone, const Task& other, const CpuSet& cpus_other);

  Tasks tasks_;
  const std::function<std::string()> moment_;
  std::atomic<std::size_t> poll_count_ = 0;
  std::atomic<std::chrono::milliseconds> longest_pause_ = std::chrono::milliseconds(0);
  std::atomic<bool> ends_ = false;

  mutable std::mutex mutex_;
  std::set<std::string> not_alone_;
  /// By the ids of both; with when each was first seen.
  std::map<std::pair<std::string, std::string>, std::pair<Overlap, std::chrono::steady_clock::time_point>> found_;

  std::thread thread_;
};

}  // namespace topolet::integration
