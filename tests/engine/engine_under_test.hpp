// The one place of these tests that knows how the engine is put together and what its ledger looks like.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/log_fwd.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/runtime_client.hpp"
#include "core/engine/converge/process_cgroups.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/fronts/cri/cri_front.hpp"
#include "core/load/load.hpp"
#include "core/placement/besteffort_share.hpp"
#include "core/simulate/recording_store.hpp"
#include "core/topology/topology.hpp"
#include "store/store.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::engine {
class Engine;
}  // namespace topolet::engine

namespace topolet::testing {

struct ObservedAllocation {
  std::string container;     ///< for people
  std::string container_id;  ///< empty until the runtime has it
  placement::ContainerKey key;
  engine::Phase phase = engine::Phase::kPending;
  bool is_kept = false;
  bool is_bound = false;
  bool exclusive = false;
  CpuSet cpus;
  CpuSet withheld;
};

struct ObservedLedger {
  CpuSet pool;
  std::vector<ObservedAllocation> allocations;
};

/// One life of the engine, with the real store in a directory that outlives it. Stopping it writes nothing and calls
/// nobody: this is how it is killed.
class EngineUnderTest {
 public:
  struct Deps {
    std::filesystem::path state_directory;
    std::shared_ptr<const topology::Topology> machine;  ///< with the CPUs that are online
    cri::Runtime& runtime;
    VirtualTime& time;
    engine::ProcessCgroups kernel;
    bool makes_room = false;         ///< containers with CPUs of their own move, and a policy wants each on few nodes
    bool pods_prefer_nodes = false;  ///< a policy keeps them where they would rather be; otherwise there is none
    /// Returns how long the store's next transaction takes; without it all is written at once. See engine::Writer.
    std::function<std::chrono::milliseconds()> transaction_time = {};
    load::Source load = {};                                  ///< what is measured; empty: nothing
    std::function<placement::BestEffortShare()> share = {};  ///< how much is for BestEffort containers
  };
  /// Throws if the engine cannot start.
  explicit EngineUnderTest(Deps deps);
  ~EngineUnderTest();
  EngineUnderTest(const EngineUnderTest&) = delete;
  EngineUnderTest& operator=(const EngineUnderTest&) = delete;

  /// It does nothing any more from here on.
  void stop();

  void on_call(const std::shared_ptr<cri::Call>& call);
  void on_observed(const cri::ObservedMessage& observation);
  void on_connected();
  /// CPUs went offline or came back.
  void change_machine(const std::shared_ptr<const topology::Topology>& machine);
  /// The same, so quickly that nobody saw it.
  void verify_cpusets();
  /// As `topolet release --all` does.
  void release();
  void read_ledger(std::function<void(const ObservedLedger&)> read_ledger);

  /// Returns a fault that it has noticed itself since the last call and that must never happen: that it lost track of
  /// where a container may run; and, with `overlaps_too`, that one runs on CPUs that another has alone.
  std::optional<std::string> take_own_fault(bool overlaps_too);

 private:
  std::vector<std::string> errors_;  ///< that it logged
  std::shared_ptr<Log> log_;
  std::unique_ptr<store::Store> store_;
  simulate::RecordedDecisions decisions_;  ///< those since take_own_fault()
  bool killed_ = false;
  std::unique_ptr<store::Store> store_until_killed_;
  std::unique_ptr<cri::RuntimeClient> runtime_client_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<cri::CriFront> front_;
};

}  // namespace topolet::testing
