// Kubelets whose containers have CPUs alone for a moment, one container after another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "tests/bench/kubelet_requests.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/support/dice.hpp"

namespace topolet::bench {

/// Counts what several kubelets do together, and ends their work when a number of containers have come and gone or
/// something went wrong. Safe from any thread.
class SharedProgress {
 public:
  struct Counts {
    std::size_t cycles = 0;    ///< containers that were created, started, stopped and removed
    std::size_t denied = 0;    ///< creates for which there were too few CPUs
    std::size_t retried = 0;   ///< creates and starts that were refused for now
    std::string failure = {};  ///< what went wrong first; empty: nothing
  };

  explicit SharedProgress(std::size_t cycles) : left_(cycles) {}

  /// Takes one of the cycles that are left to begin; false if there is none.
  bool begin_cycle();
  void end_cycle();
  /// Counts a create or start that failed. Any but those that a kubelet would repeat is a failure of the whole, and so
  /// are those that it has repeated for too long.
  void note_refusal(const Error& error);
  void fail(std::string why);
  bool has_failed() const;
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;

  mutable std::mutex mutex_;
  std::size_t left_;
  Counts counts_;
  Clock::time_point last_cycle_ = Clock::now();
};

/// Creates, starts, stops and removes Guaranteed containers in a pod of its own. One thread.
class ExclusiveKubelet {
 public:
  struct Options {
    std::string socket;
    std::size_t number = 0;  ///< of this kubelet
    std::int64_t cpus = 0;   ///< of each container
    std::uint64_t seed = 0;  ///< of the times in between
  };

  /// Connects and makes the pod. Throws if that fails.
  ExclusiveKubelet(const Options& options, SharedProgress& progress);

  /// Returns when no cycle is left, or something has failed.
  void run();

 private:
  bool run_container();
  std::optional<std::string> try_call(const char* method, const std::string& request);
  void call(const char* method, const std::string& request);
  void wait(std::chrono::microseconds shortest, std::chrono::microseconds longest);

  SharedProgress& progress_;
  const PodSpec pod_;
  LoadClient client_;
  testing::Dice dice_;
  const std::string sandbox_id_;
  std::size_t containers_ = 0;
};

}  // namespace topolet::bench
