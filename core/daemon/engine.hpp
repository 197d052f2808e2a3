// The core behind the proxy: takes intercepted calls, keeps the ledger, and reconciles it with the runtime.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/cri/call.hpp"
#include "core/cri/runtime_client.hpp"
#include "core/daemon/bookings.hpp"
#include "core/daemon/creates.hpp"
#include "core/daemon/effect.hpp"
#include "core/daemon/journal.hpp"
#include "core/daemon/lifecycle.hpp"
#include "core/daemon/loop.hpp"
#include "core/daemon/placer.hpp"
#include "core/daemon/reconciler.hpp"
#include "core/daemon/room.hpp"
#include "core/daemon/sandboxes.hpp"
#include "core/placement/lanes.hpp"

namespace topolet {

/// The methods of the runtime service that the core wants to have before they are forwarded.
inline constexpr std::array<const char*, 8> kInterceptedMethods = {
    "RunPodSandbox",  "StopPodSandbox", "RemovePodSandbox", "CreateContainer",
    "StartContainer", "StopContainer",  "RemoveContainer",  "UpdateContainerResources"};
/// Those it wants to see after they were answered.
inline constexpr std::array<const char*, 4> kObservedMethods = {"ListContainers", "StreamContainers", "ContainerStatus",
                                                                "GetContainerEvents"};

/// The engine at one moment.
struct EngineSummary {
  std::map<std::string, std::uint32_t> containers;  ///< by mode
  std::uint64_t generation = 0;
  CpuSet allowed;
  CpuSet pool;
  CpuSet reserved;
  CpuSet exclusive;
  CpuSet withheld;
  bool reconciled = false;      ///< with the runtime, since the start
  bool store_degraded = false;  ///< writes wait for a database that takes none
};

/// summary(), on_call(), on_observed() and on_connected() may be called from any thread; all but the first do not wait.
/// Everything else happens on the engine's own loop.
class Engine {
 public:
  struct Options {
    std::vector<std::string> handlers;  ///< runtime handlers whose containers are placed; "" is the default one
    std::chrono::milliseconds pending_timeout = std::chrono::minutes(4);
    std::chrono::milliseconds reconcile_every = std::chrono::seconds(5);
    std::chrono::milliseconds first_reconcile_retry{500};
    DemandRules demand_rules = {};
  };
  /// What changes when CPUs go off- or online.
  struct Machine {
    std::shared_ptr<const Topology> topology;
    std::vector<Candidate> candidates;
    LedgerRules cpus;
  };
  struct Parts {
    Runtime& runtime;
    Store& store;
    LedgerRules cpus;
    Placer::Parts placing;
    Kernel kernel;
    Clock clock;
    Log& log;
    /// What plugins hear and wish between decisions; see PolicyThread. All may be empty.
    std::function<bool()> somebody_hears = {};
    std::function<void(std::shared_ptr<const Happening>)> notify = {};
    std::function<std::vector<ReplacementWish>(const std::function<std::shared_ptr<const TickView>()>& view)>
        tick_plugins = {};
    std::unique_ptr<Loop> loop = std::make_unique<ThreadLoop>();
  };
  Engine(Options options, Parts parts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads what the store knows and begins to reconcile. Until that has been done once, calls that place, start or
  /// change containers are held.
  Status start();
  /// Ends the loop. Calls still held are answered UNAVAILABLE by being dropped.
  void stop();

  /// What there is to say of the whole, as of now. Waits for the loop; UNAVAILABLE if that takes `patience`.
  Result<EngineSummary> summary(std::chrono::milliseconds patience);

  /// Runs `look` on the loop's thread. Does not wait for it.
  void look(std::function<void(const Ledger& ledger)> look);

  /// Writes an event of no container to the audit. Does not wait; any thread.
  void remark(const std::string& event, const std::string& reason);

  /// Containers that hold CPUs which are gone are placed anew; where nothing else is free they keep what is left.
  /// Does not wait.
  void change_machine(Machine machine);

  void on_call(std::shared_ptr<Call> call);
  void on_observed(Observation observation);
  void on_connected();

 private:
  EngineSummary summarise() const;
  void handle(const std::shared_ptr<Call>& call);
  void dispatch(const std::shared_ptr<Call>& call);
  void observe(const Observation& observation);
  void reconcile_first();
  void release_held(const Status& reconciled);
  void tick();
  void take_up_later();
  void tell_plugins(Happening::Kind kind, const Holding& holding);
  void tick_plugins();

  Options options_;
  Log& log_;
  Clock clock_;
  const decltype(Parts::somebody_hears) somebody_hears_;
  const decltype(Parts::notify) notify_;
  const decltype(Parts::tick_plugins) tick_plugins_;
  Store& store_;
  std::unique_ptr<Loop> loop_;
  RuntimeClient client_;
  Journal journal_;
  Lanes lanes_;
  Bookings bookings_;
  Sandboxes sandboxes_;
  Effect effect_;
  Placer placer_;
  Room room_;
  Creates creates_;
  Lifecycle lifecycle_;
  Reconciler reconciler_;
  bool reconciled_ = false;
  bool will_take_up_ = false;
  bool complained_ = false;  ///< that the runtime cannot be asked
  std::chrono::steady_clock::time_point last_reconcile_{};
  std::vector<std::shared_ptr<Call>> held_;
};

}  // namespace topolet
