// A kubelet's calls for one pod after another, at random.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/integration/cri_client.hpp"
#include "tests/integration/overlap_watch.hpp"

namespace topolet::integration {

/// The parts that all workers share.
struct WorkerContext {
  std::string endpoint;
  CgroupNaming cgroups;
  OverlapWatch& watch;
  std::atomic<bool> is_closing = false;    ///< no worker begins anything new
  std::atomic<bool> is_abandoned = false;  ///< nobody waits for topoletd any more
  std::atomic<std::uint64_t> calls = 0;    ///< begun so far
};

struct Tally {
  int placed = 0;
  int denied = 0;
  int repeated_creates = 0;
  int abandoned_starts = 0;
  int resizes = 0;

  Tally& operator+=(const Tally& other);
};

std::string to_string(const Tally& tally);

/// The kind of CPUs that a worker's containers request.
enum class WorkerKind { kWholeCpus, kSharedCpus };

/// Runs pods with one container in them, in several attempts; repeats what ended in doubt until topoletd has answered,
/// the first time as soon as it listens again. Not synchronised.
class PodWorker {
 public:
  PodWorker(std::string name, WorkerKind kind, WorkerContext& workplace, std::uint32_t seed);

  /// Until the workplace closes; what runs then goes on running.
  void work();

  const Tally& tally() const { return tally_; }
  /// Returns descriptions of events that should never happen.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  void remove_own_pods();
  void remove_containers_of(const std::string& sandbox_id);
  bool run_pod();
  /// Returns true if another attempt makes sense.
  bool run_attempt(std::uint32_t attempt);
  std::optional<std::string> create(std::uint32_t attempt);
  std::optional<std::string> find(std::uint32_t attempt);
  void start(const std::string& id);
  void resize(const std::string& id);
  cri::LinuxContainerResources other_resources(const std::string& id);
  void end_former_attempts();

  Resources any_resources();
  /// Returns true in `of_hundred` of a hundred cases, at random.
  bool happens(int of_hundred) { return number(1, 100) <= of_hundred; }
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(dice_); }
  /// Nothing is asked for a while.
  void linger();

  /// Calls until topoletd has answered; `call` returns a Status or Result.
  template <class Call>
  auto call_until_answered(const char* what, Call call);
  /// Before a call that failed is repeated.
  void recover(const Error& error);

  const std::string name_;
  const WorkerKind kind_;
  WorkerContext& workplace_;
  std::mt19937 dice_;
  CriClient client_;
  Pod pod_;
  int pods_ = 0;
  std::vector<std::string> former_attempts_;  ///< ids; what of the pod's containers was not removed yet
  Tally tally_;
  std::vector<std::string> failures_;
};

}  // namespace topolet::integration
