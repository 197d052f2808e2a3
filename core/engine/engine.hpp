// The core behind the front ends: takes their operations, keeps the ledger, and reconciles it with the runtime.
//
// The room core/engine, namespace topolet::engine: everything that decides a container's future, on one thread. Its
// README.md walks through a create, a start, an update, an exit and a restart. The engine is given its runtime, its
// store and a way to decide. It may include core/base, core/load, core/operations, core/placement, core/topology, the
// store, and of core/plugin only the plain values of the events that plugins hear.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/heal_report.hpp"
#include "core/engine/converge/kubelet_cpus.hpp"
#include "core/engine/converge/overlap.hpp"
#include "core/engine/converge/process_cgroups.hpp"
#include "core/engine/converge/release_report.hpp"
#include "core/engine/handlers/capacity_request.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/planning/fits.hpp"
#include "core/engine/planning/placer_deps.hpp"
#include "core/engine/state/audit_event.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/engine/state/observer.hpp"
#include "core/engine/state/reported_capacity.hpp"
#include "core/engine/state/setup.hpp"
#include "core/engine/state/writer_options.hpp"
#include "core/load/sampler.hpp"
#include "core/operations/foreign_cpuset.hpp"
#include "core/operations/operation.hpp"
#include "core/operations/runtime.hpp"
#include "core/placement/besteffort_share.hpp"
#include "core/placement/runtime_handlers.hpp"
#include "core/plugin/call/container_event.hpp"

namespace topolet::store {
class Store;
}

namespace topolet::engine {

/// A reported capacity with what it is compared to.
struct NodeCapacity {
  ReportedCapacity told;
  std::int64_t nominal_milli = 0;
};

/// A container whose CPUs another hand than topolet's sets.
struct OverruledContainer {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;            ///< that it should have
  CpuSet seen_on;         ///< where the kernel has it instead; empty: where it should be, at the moment
  std::chrono::milliseconds lasts{};
  std::string plugin = {};  ///< of the runtime, that does it; empty: it is not known who does
};

/// A container that does not leave CPUs.
struct StuckContainer {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;            ///< that nobody else is given alone for that
  std::string why;        ///< the runtime's words
  std::chrono::milliseconds lasts{};
};

/// A container that CPUs are missing for.
struct SqueezedContainer {
  std::string container;        ///< as display_name() says it
  CpuSet cpus;                  ///< that it has instead
  bool left_to_kernel = false;  ///< none of these may be used: it runs where the kernel lets it
};

/// A container that may not run, or not move to its CPUs, before others have left these.
struct WaitingContainer {
  std::string container;              ///< as display_name() says it
  std::string waits_for;              ///< one of the others, the same way
  CpuSet cpus;                        ///< on which that one may still run
  bool runs = false;                  ///< elsewhere, meanwhile
  std::chrono::milliseconds since{};  ///< wall clock: of its phase
};

/// A container, and CPUs that something is the matter with.
struct ContainerOnCpus {
  std::string container;  ///< as display_name() says it
  CpuSet cpus;
};

/// A container of which nobody can tell whether the runtime has it.
struct DoubtfulContainer {
  std::string container;              ///< as display_name() says it
  std::chrono::milliseconds since{};  ///< wall clock
};

/// Containers of a runtime handler that topolet does not place.
struct ForeignContainers {
  std::uint32_t containers = 0;
  std::string obstacle;  ///< why they are not placed
};

/// The engine at one moment.
struct EngineSummary {
  std::map<std::string, std::uint32_t> containers;  ///< by seen_mode()
  std::uint32_t squeezed = 0;                       ///< those that do not have the CPUs they should, as CPUs are gone
  std::uint32_t left_to_kernel = 0;                 ///< those of them without any CPU
  std::uint64_t generation = 0;
  CpuSet allowed;
  CpuSet pool;
  CpuSet reserved;
  CpuSet exclusive;
  CpuSet withheld;
  bool reconciled = false;      ///< with the runtime, since the start
  bool store_degraded = false;  ///< writes wait for a database that takes none
  std::string store_degraded_because = {};
  std::map<std::string, ForeignContainers> foreign = {};  ///< by runtime handler
  std::vector<NodeCapacity> capacities = {};              ///< of the nodes that something is told of, by OS index
  std::vector<Overlap> overlaps = {};                     ///< containers on CPUs that another one has alone
  bool confines_foreign = false;                          ///< their pods are kept within the shared pool
  std::map<std::string, std::string> unconfined = {};     ///< why that cannot be done, by NAMESPACE/POD
  std::map<std::string, std::string> kept_quotas = {};    ///< why a pod's CFS quota stays, by NAMESPACE/POD
  std::vector<OverruledContainer> overruled = {};
  std::vector<StuckContainer> stuck = {};
  std::string store_reopened_because = {};  ///< when and why the database was begun anew; empty if it never was
  Released released = Released::kNothing;
  std::string files_refused_because = {};  ///< why memory.high is set for nobody; empty if the runtime takes it
  std::vector<SqueezedContainer> squeezed_containers = {};
  std::vector<WaitingContainer> waiting = {};
  std::vector<ContainerOnCpus> drifted = {};  ///< seen on these CPUs, where they should not be; not the overruled ones
  std::vector<ContainerOnCpus> conflicts = {};  ///< with the kubelet's CPUs, which overlap those of others
  std::vector<DoubtfulContainer> in_doubt = {};
};

/// The public functions but start() and stop() may be called from any thread; only summary() waits. Everything else
/// happens on the engine's own loop.
class Engine final : public operations::OperationHandler {
 public:
  struct Options {
    placement::RuntimeHandlers runtime_handlers;  ///< whose containers are placed
    bool confine_foreign = false;                 ///< the pods of all others are kept within the shared pool
    std::chrono::milliseconds doubt_timeout = std::chrono::minutes(4);
    std::chrono::milliseconds reconcile_every = std::chrono::seconds(5);
    std::chrono::milliseconds first_reconcile_retry{500};
    std::chrono::milliseconds start_grace = std::chrono::seconds(10);
    WriterOptions writer_options = {};
    operations::DemandRules demand_rules = {};
    KubeletCpus kubelet_cpus = {};    ///< that containers had from a kubelet before the start
    std::optional<Setup> setup = {};  ///< what the first decisions are made with, for the audit
  };
  using Machine = engine::Machine;
  struct Deps {
    operations::ContainerRuntime& runtime;
    store::Store& store;
    CpuInventory cpus;
    PlacerDeps placer;
    ProcessCgroups kernel;
    Clock clock;
    Log& log;
    /// Tells plugins of events, and collects the moves they request; see PolicyThread. All may be empty.
    std::function<bool()> any_plugin_handles_events = {};
    std::function<void(std::shared_ptr<const plugin::ContainerEvent>)> publish_event = {};
    std::function<std::vector<plugin::MoveRequest>(
        const std::function<std::shared_ptr<const plugin::TickSnapshot>()>& view)>
        tick_plugins = {};
    /// Returns how much is for BestEffort containers. May be empty: they yield to nobody.
    std::function<placement::BestEffortShare()> besteffort_share = {};
    /// Who else hears of all transitions, on the loop's thread. They must outlive the engine.
    std::vector<Observer*> observers = {};
    std::unique_ptr<Loop> loop = std::make_unique<ThreadLoop>();
  };
  Engine(Options options, Deps deps);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Checks that the store's rows can be understood; DATA_LOSS names what cannot.
  static Status check_stored(store::Store& store);

  /// Begins with what the store knew when the engine was made, and compares it with the runtime. Calls that place,
  /// start or change containers wait for that; while the runtime does not answer they are rejected. An error if the
  /// store could not be read.
  Status start();
  /// Has the plugins that are due by then called for a tick when `delay` has passed. Any thread, until stop().
  void tick_plugins_in(std::chrono::milliseconds delay);
  /// Ends the loop, and writes what waits to be written. Calls still held are answered UNAVAILABLE by being dropped.
  /// False if the store does not return: then neither this nor the store may be destroyed, see Writer::stop().
  bool stop();

  /// Returns `read(ledger)`, called on the loop's thread. Waits for that; UNAVAILABLE if it takes longer than
  /// `patience`.
  template <class Read>
  auto ask(Read read, std::chrono::milliseconds patience) -> Result<decltype(read(std::declval<const Ledger&>()))> {
    using Answer = decltype(read(std::declval<const Ledger&>()));
    const auto promise = std::make_shared<std::promise<Answer>>();
    std::future<Answer> answer = promise->get_future();
    read_ledger([promise, read = std::move(read)](const Ledger& ledger) { promise->set_value(read(ledger)); });
    if (answer.wait_for(patience) == std::future_status::ready) return answer.get();
    return Error{Code::kUnavailable, "topoletd is busy placing containers; try again"};
  }
  /// The engine's present state, as ask() does it.
  Result<EngineSummary> summary(std::chrono::milliseconds patience);

  struct NodeFits {
    Fits fits;
    bool reconciled = false;  ///< as in EngineSummary
  };
  /// Returns compute_fits() of the present state. Computed on the caller's thread, so that no container waits for it
  /// but for single decisions; UNAVAILABLE if the loop does not answer within `patience`. `may_go_on` is asked before
  /// each decision.
  Result<NodeFits> fits(const std::vector<PendingContainer>& pending, std::chrono::milliseconds patience,
                        MayGoOn may_go_on);
  /// The same at once, on the loop's thread.
  Result<NodeFits> fits(const std::vector<PendingContainer>& pending, MayGoOn may_go_on) const;

  using CapacityRequest = engine::CapacityRequest;
  using CapacityAnswer = engine::CapacityAnswer;
  using OnCapacity = engine::OnCapacity;
  /// As handle_set_capacity() does it; `then` runs on the loop's thread.
  void set_capacity(CapacityRequest request, OnCapacity then);
  /// The same, and waits for it; UNAVAILABLE if it takes longer than `patience`.
  Result<CapacityAnswer> set_capacity(CapacityRequest request, std::chrono::milliseconds patience);

  /// As handle_measured_capacity() does it.
  void note_measured_capacity(std::uint32_t node, std::optional<std::int64_t> milli);

  using HealReport = engine::HealReport;
  /// Makes one pass of healing, as HealPass does it; a dry run changes nothing. `then` runs on the loop's thread.
  void heal(bool is_dry, OnHealed then);
  /// The same, and waits for it; UNAVAILABLE if it takes longer than `patience`.
  Result<HealReport> heal(bool is_dry, std::chrono::milliseconds patience);

  /// Takes back what topolet has done to containers, as Releaser does it. `then` runs on the loop's thread.
  void release(bool cpusets, OnReleased then);
  /// The same, and waits for it; UNAVAILABLE if it takes longer than `patience`.
  Result<ReleaseReport> release(bool cpusets, std::chrono::milliseconds patience);

  /// As judge_foreign_cpuset() does it; `judged` runs on the loop's thread.
  void judge_foreign_cpuset(operations::ForeignCpuset found, bool refuses, operations::OnForeignCpusetJudged judged);

  /// Runs `read_ledger` on the loop's thread.
  void read_ledger(std::function<void(const Ledger& ledger)> read_ledger);

  /// Calls `read` on the loop's thread with what there is to measure: the running containers of which a process is
  /// known, and the CPUs of each NUMA node.
  void read_load_subjects(std::function<void(load::Subjects)> read);

  /// Writes an event of no container to the audit.
  void record_event(AuditEvent event, const std::string& reason);

  /// For the audit: what decisions are made with from now on.
  void change_setup(Setup setup);

  /// Containers that hold CPUs which are gone are placed anew; where nothing else is free they are squeezed into what
  /// is left.
  void change_machine(Machine machine);
  /// The kernel may have changed the CPUs of containers: whoever has others than it should, or fewer, is repaired.
  void verify_cpusets();

  void create(std::shared_ptr<operations::CreateOperation> operation) override;
  void update(std::shared_ptr<operations::UpdateOperation> operation) override;
  void start(std::shared_ptr<operations::TargetOperation> operation) override;
  void stop(std::shared_ptr<operations::TargetOperation> operation) override;
  void remove(std::shared_ptr<operations::TargetOperation> operation) override;
  void run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) override;
  void stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) override;
  void remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) override;
  void on_exits(std::vector<operations::ExitSeen> exits) override;
  void on_connected() override;
  void on_own_update(std::string container_id, operations::ContainerCpuset sent,
                     std::function<void(const operations::ContainerCpuset&)> tell) override;
  bool shows_quotas() const override;
  std::optional<operations::CfsQuota> quota_to_show(const std::string& container_id) const override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::engine
