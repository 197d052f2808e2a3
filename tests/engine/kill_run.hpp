// A node in virtual time: kubelet, engine, runtime and kernel, with a daemon that is killed again and again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/topology/topology.hpp"
#include "tests/engine/daemon_life.hpp"
#include "tests/engine/engine_under_test.hpp"
#include "tests/engine/random_kubelet.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/verifying_runtime.hpp"

namespace topolet::testing {

/// One run. Everything that happens follows from the seed.
class KillRun {
 public:
  /// The number of events at a time.
  enum class Pace : std::uint8_t {
    kCalm,   ///< now and then something, which is written to the store at once
    kDense,  ///< many pods at a time; the runtime answers before the store has written what led to the call before
  };
  struct Options {
    std::uint64_t seed = 1;
    std::size_t events = 500;  ///< calls of the kubelet, exits and kills
    Pace pace = Pace::kCalm;
    bool kills = true;
    bool hotplug = false;     ///< CPUs go offline and come back
    bool slow_store = false;  ///< with Pace::kDense: transactions often take longer than those wait who act on them
    bool makes_room = false;  ///< containers with CPUs of their own move, so that others have a better place
    /// Loads come and go: BestEffort containers give way and get back, of CPUs and of memory, until that is released.
    bool has_load = false;
    bool trace_to_stderr = false;
  };
  explicit KillRun(Options options);
  ~KillRun();
  KillRun(const KillRun&) = delete;
  KillRun& operator=(const KillRun&) = delete;

  /// Returns the first fault, with the events before it; nothing if all was well.
  std::optional<std::string> run();

  std::size_t kills() const { return kills_; }

 private:
  using Milliseconds = std::chrono::milliseconds;

  void start_daemon();
  Milliseconds transaction_time();
  bool change_cpus();
  void set_offline(const CpuSet& offline);
  void note_own_fault();
  void kill();
  bool should_be_killed();
  void act();
  bool exit_some();
  void change_load();
  void send(std::string method, std::string request, RandomKubelet::Answered answered);
  void observe(Milliseconds delay, const std::string& method, std::string response);
  void advance(Milliseconds time);
  /// Lets the kubelet's `unfinished` business come to an end without faults.
  void run_until_settled(const std::function<bool()>& unfinished);
  /// Shows `see` the ledger as it is now; that it cannot be seen is a fault.
  void read_ledger_now(std::function<void(const ObservedLedger&)> see);
  void compare();
  void check_nothing_is_left();
  bool failed() const { return fault_.has_value() || runtime_->violation().has_value(); }

  const Options options_;
  Dice dice_;
  VirtualTime time_;
  Trace trace_;
  TempDir directory_;
  const std::string synthetic_;
  const std::shared_ptr<const topology::Topology> whole_machine_;
  std::shared_ptr<const topology::Topology> machine_;  ///< with the CPUs that are online
  KernelTree kernel_;
  std::unique_ptr<VerifyingRuntime> runtime_;
  std::unique_ptr<RandomKubelet> kubelet_;
  VerifyingRuntime::Faults faults_;
  const bool pods_prefer_nodes_;
  std::optional<DaemonLife> life_;
  std::unique_ptr<DaemonRuntime> daemon_runtime_;
  std::unique_ptr<EngineUnderTest> engine_;
  std::shared_ptr<const load::Load> load_;  ///< null: nothing is measured
  std::optional<std::string> fault_;
  std::optional<std::string> minor_fault_;
  std::size_t events_ = 0;
  std::size_t kills_ = 0;
  bool faults_off_ = false;
};

}  // namespace topolet::testing
