// The core behind the proxy: takes intercepted calls, keeps the ledger, and reconciles it with the runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/cri/call.hpp"
#include "core/cri/intercepted_methods.hpp"
#include "core/cri/runtime_client.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/reconciler.hpp"
#include "core/engine/followed_clock.hpp"
#include "core/engine/handlers/deps.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/plugin_events.hpp"
#include "core/engine/state/committer.hpp"
#include "store/store.hpp"

namespace topolet::engine {

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
    std::chrono::milliseconds start_grace = std::chrono::seconds(10);
    Writer::Options writing = {};
    DemandRules demand_rules = {};
  };
  using Machine = Rebalancer::Machine;
  struct Parts {
    Runtime& runtime;
    Store& store;
    LedgerRules cpus;
    Placer::Deps placing;
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

  /// Begins with what the store knew when the engine was made, and reconciles it. Until that has been done once, calls
  /// that place, start or change containers are held. An error if the store could not be read.
  Status start();
  /// Ends the loop, and writes what waits to be written. Calls still held are answered UNAVAILABLE by being dropped.
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
  struct Loaded {
    Ledger ledger;
    Status status;
  };
  static Loaded load(Store& store, LedgerRules cpus);
  Engine(Options&& options, Parts&& parts, Loaded loaded);

  EngineSummary summarise() const;
  void begin();
  void handle(const std::shared_ptr<Call>& call);
  void dispatch(const Interception& interception, const std::shared_ptr<Call>& call);
  void observe(const Observation& observation);
  void reconcile_first();
  void release_held(const Status& reconciled);
  void tick();
  void follow_clock();
  void tick_plugins();

  // In the order in which they need each other.
  const Options options_;
  Log& log_;
  FollowedClock clock_;
  const decltype(Parts::tick_plugins) tick_plugins_;
  const Status loaded_;
  const std::uint64_t lost_after_;
  std::unique_ptr<Loop> loop_;
  RuntimeClient client_;
  Placer placer_;
  Committer committer_;
  CpusetWriter cpusets_;
  Exits exits_;
  Mover mover_;
  Rebalancer rebalancer_;
  PluginEvents plugin_events_;
  Reconciler reconciler_;
  const HandlerDeps handlers_;

  bool reconciled_ = false;
  bool warned_ = false;  ///< that the runtime cannot be asked
  std::chrono::steady_clock::time_point last_reconcile_{};
  std::vector<std::shared_ptr<Call>> held_;
};

}  // namespace topolet::engine
