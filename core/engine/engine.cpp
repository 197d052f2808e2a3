#include "core/engine/engine.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/log.hpp"
#include "core/engine/converge/besteffort_relief.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/home_relief.hpp"
#include "core/engine/converge/memory_narrower.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/pod_confiner.hpp"
#include "core/engine/converge/pod_quotas.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/reconciler.hpp"
#include "core/engine/converge/releaser.hpp"
#include "core/engine/converge/shown_quotas.hpp"
#include "core/engine/handlers/awaited_outcomes.hpp"
#include "core/engine/handlers/create_container.hpp"
#include "core/engine/handlers/foreign_cpuset.hpp"
#include "core/engine/handlers/handler_deps.hpp"
#include "core/engine/handlers/pod_sandboxes.hpp"
#include "core/engine/handlers/set_capacity.hpp"
#include "core/engine/handlers/start_container.hpp"
#include "core/engine/handlers/stop_container.hpp"
#include "core/engine/handlers/update_container_resources.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/plugin_events.hpp"
#include "core/engine/state/committer.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/load_ledger.hpp"
#include "core/engine/steady_wall_clock.hpp"
#include "core/engine/summarise.hpp"
#include "store/store.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::seconds kTick{1};

/// An operation that waits until the ledger has been compared with the runtime once.
struct DeferredOperation {
  std::shared_ptr<operations::Operation> operation;
  std::function<void()> handle;
};

PlacerDeps with_wall_clock(PlacerDeps deps, const Clock& clock) {
  deps.wall = clock.wall;
  return deps;
}

}  // namespace

/// The part that works on the loop's thread, and what it works with.
struct Engine::Impl {
  // By reference, as `deps` is read for `loaded` too, in whatever order.
  Impl(Options&& options, Deps&& deps, LoadedLedger loaded);

  void begin();
  bool stop();
  void when_reconciled(std::shared_ptr<operations::Operation> operation, std::function<void()> handle);
  void reconcile_at_start();
  void reconcile_after_outage();
  void release_deferred(const Status& status);
  void tick();
  void follow_clock();
  void tick_plugins();
  EngineSummary summarise() const;
  load::Subjects load_subjects() const;

  // In the order in which they need each other.
  const Options options;
  Log& log;
  SteadyWallClock clock;
  const decltype(Deps::tick_plugins) ask_plugins;
  const Status load_status;
  const std::uint64_t newest_lost_generation;
  const CpuSet arrived_cpus;  ///< while no daemon ran
  const std::vector<Observer*> observers;
  std::unique_ptr<Loop> loop;
  Placer placer;
  Committer committer;
  PlacedHandlers placed_handlers;
  PodConfiner confiner;
  PodQuotas pod_quotas;
  ShownQuotas shown_quotas;
  CpusetWriter cpusets;
  Exits exits;
  Mover mover;
  MemoryNarrower memory_narrower;
  Rebalancer rebalancer;
  HomeRelief home_relief;
  BestEffortRelief besteffort_relief;
  Releaser releaser;
  PluginEvents plugin_events;
  KubeletStatic kubelet_static;
  AwaitedOutcomes awaited_outcomes;
  Reconciler reconciler;
  const HandlerDeps handler_deps;

  bool reconciled = false;
  bool warned_unreachable = false;  ///< that the runtime cannot be asked
  bool asks_again = false;          ///< it was reachable, and had no answer: the same is asked again soon
  std::chrono::steady_clock::time_point last_reconcile{};
  std::vector<DeferredOperation> deferred_operations;
};

Engine::Impl::Impl(Options&& given, Deps&& deps, LoadedLedger loaded)
    : options(std::move(given)),
      log(deps.log),
      clock(std::move(deps.clock)),
      ask_plugins(std::move(deps.tick_plugins)),
      load_status(std::move(loaded.status)),
      newest_lost_generation(deps.store.report().newest_lost_generation),
      arrived_cpus(loaded.arrived_cpus),
      observers(std::move(deps.observers)),
      loop(std::move(deps.loop)),
      placer(with_wall_clock(std::move(deps.placer), clock.clock())),
      committer({*loop, deps.store, options.writer_options, placer.rules(), clock.clock(), deps.log},
                std::move(loaded.ledger)),
      placed_handlers(options.runtime_handlers),
      confiner(
          {*loop, committer, PodCgroups(deps.kernel.hierarchy()), placed_handlers, options.confine_foreign, deps.log}),
      pod_quotas({*loop, committer, deps.kernel.quota_hierarchy(), deps.log}),
      cpusets({*loop, deps.runtime, options.demand_rules, std::move(deps.kernel), deps.log, clock.clock()}),
      exits(committer, cpusets, deps.any_plugin_handles_events),
      mover({*loop, committer, cpusets, exits, options.start_grace, clock.clock(), deps.log}),
      memory_narrower({*loop, committer, cpusets, mover, clock.clock(), deps.log}),
      rebalancer({*loop, committer, placer, mover, clock.clock(), deps.log}),
      home_relief({committer, placer, clock.clock()}),
      besteffort_relief({committer, placer, cpusets, clock.clock(), deps.log, std::move(deps.besteffort_share)}),
      releaser({committer, mover, besteffort_relief, home_relief, rebalancer, placed_handlers, confiner, deps.log}),
      plugin_events(committer,
                    {*loop, placer, std::move(deps.any_plugin_handles_events), std::move(deps.publish_event)}),
      kubelet_static(committer, loaded.told_of_kubelet, deps.log),
      awaited_outcomes(clock.clock(), options.doubt_timeout),
      reconciler({*loop, committer, placer, cpusets, mover, exits, rebalancer, placed_handlers,
                  newest_lost_generation > 0, options.doubt_timeout, options.start_grace, clock.clock(), deps.log,
                  options.kubelet_cpus, why_creates_are_unknown(loaded, deps.store.report())}),
      handler_deps{*loop,
                   committer,
                   placer,
                   cpusets,
                   mover,
                   exits,
                   rebalancer,
                   reconciler,
                   placed_handlers,
                   kubelet_static,
                   awaited_outcomes,
                   options.demand_rules,
                   log} {}

void Engine::Impl::begin() {
  committer.subscribe(confiner);
  committer.subscribe(pod_quotas);
  shown_quotas.on_loaded(committer.ledger());
  committer.subscribe(shown_quotas);
  for (Observer* observer : observers) {
    observer->on_loaded(committer.ledger());
    committer.subscribe(*observer);
  }
  if (newest_lost_generation > 0) {
    committer.commit(event::AuditOnly{
        AuditEvent::kGap,
        fmt::format("the state database lost its newest changes: it ends before generation {}, which topoletd acted on "
                    "in this boot; which containers run is read from the runtime",
                    newest_lost_generation)});
  }
  plugin_events.publish_known(committer.ledger());
  committer.commit(event::Restarted{newest_lost_generation > 0, placer.topology(), options.setup, arrived_cpus});
  reconcile_at_start();
  tick();
}

bool Engine::Impl::stop() {
  loop->stop();
  const bool ended = committer.stop();
  deferred_operations.clear();
  awaited_outcomes.drop();
  return ended;
}

EngineSummary Engine::Impl::summarise() const {
  return engine::summarise({committer, placer, mover, confiner, pod_quotas, releaser, cpusets, placed_handlers,
                            options.confine_foreign, reconciled, clock.clock().wall()});
}

load::Subjects Engine::Impl::load_subjects() const {
  load::Subjects subjects;
  for (const auto& [key, allocation] : committer.ledger().allocations()) {
    const auto process = cpusets.process_of(allocation.container_id);
    if (allocation.phase == Phase::kRunning && process)
      subjects.containers.push_back({allocation.container_id, *process});
  }
  for (const topology::Node& node : placer.topology()->nodes) {
    if (!node.memory_only) subjects.nodes[node.os_index] = node.cpus;
  }
  return subjects;
}

/// Runs `handle` on the loop, once the ledger has been compared with the runtime.
void Engine::Impl::when_reconciled(std::shared_ptr<operations::Operation> operation, std::function<void()> handle) {
  loop->post([this, operation = std::move(operation), handle = std::move(handle)]() mutable {
    if (reconciled) return handle();
    deferred_operations.push_back({std::move(operation), std::move(handle)});
  });
}

void Engine::Impl::reconcile_at_start() {
  reconciler.run([this](const Status& status) {
    // Before the first decision, so that plugins know the machine as it is before anything changes.
    if (status) tick_plugins();
    release_deferred(status);
    if (status) {
      if (std::exchange(warned_unreachable, false)) log.info("the runtime answers; containers are placed from now on");
      return;
    }
    if (!std::exchange(warned_unreachable, true)) {
      log.warn("the runtime cannot be asked what it runs: {}; containers are placed once it can",
               status.error().message);
    }
    loop->after(options.first_reconcile_retry, [this] { reconcile_at_start(); });
  });
}

/// A runtime that was started again takes connections before it answers, and may have made containers without topolet.
void Engine::Impl::reconcile_after_outage() {
  reconciler.run([this](const Status& status) {
    if (status || std::exchange(asks_again, true)) return;
    loop->after(options.first_reconcile_retry, [this] {
      asks_again = false;
      reconcile_after_outage();
    });
  });
}

void Engine::Impl::release_deferred(const Status& status) {
  reconciled = status.has_value();
  if (reconciled) {
    rebalancer.begin();
    committer.when_durable([this] {
      confiner.on_reconciled();
      pod_quotas.on_reconciled();
      for (Observer* observer : observers) observer->on_reconciled();
    });
  }
  std::vector<DeferredOperation> held;
  held.swap(deferred_operations);
  for (const DeferredOperation& deferred : held) {
    if (reconciled) {
      deferred.handle();
    } else {
      deferred.operation->reject(
          {Code::kUnavailable, "topolet places no container before it knows what runs: " + status.error().message});
    }
  }
}

void Engine::Impl::tick_plugins() {
  if (!ask_plugins) return;
  const std::vector<plugin::MoveRequest> requests = ask_plugins([this] {
    const load::Source& load = placer.deps().load;
    return std::make_shared<const plugin::TickSnapshot>(
        plugin::TickSnapshot{placer.topology(), committer.ledger().snapshot(), load ? load() : nullptr});
  });
  for (const plugin::MoveRequest& request : requests) rebalancer.move_as_requested(request);
}

void Engine::Impl::tick() {
  loop->after(kTick, [this] { tick(); });
  follow_clock();
  awaited_outcomes.expire();
  if (!committer.ledger().reported_capacities().empty()) committer.commit(event::CapacityTimePassed{});
  if (!reconciled) return;
  reconciler.expire();
  mover.resolve_unfinished_starts();
  mover.try_stuck();
  pod_quotas.check();
  memory_narrower.check();
  home_relief.check();
  besteffort_relief.check();
  tick_plugins();
  const auto now = clock.clock().steady();
  if (now - last_reconcile < options.reconcile_every && !reconciler.has_creates_in_doubt()) return;
  last_reconcile = now;
  reconciler.run([this](const Status& status) {
    if (!status) return log.debug("could not reconcile: {}", status.error().message);
    rebalancer.retry();
  });
}

/// Has times that count from a moment of the wall clock go on counting when the clock is set.
void Engine::Impl::follow_clock() {
  if (const auto set_by = clock.follow()) committer.commit(event::ClockSet{*set_by});
}

Engine::Engine(Options options, Deps deps)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(deps), load_ledger(deps.store, deps.cpus))) {}

Engine::~Engine() { stop(); }

Status Engine::check_stored(store::Store& store) { return load_ledger(store, {}).status; }

Status Engine::start() {
  if (!impl_->load_status) return impl_->load_status;
  impl_->loop->post([this] { impl_->begin(); });
  return {};
}

void Engine::tick_plugins_in(std::chrono::milliseconds delay) {
  impl_->loop->after(delay, [this] {
    if (impl_->reconciled) impl_->tick_plugins();
  });
}

bool Engine::stop() { return impl_->stop(); }

Result<EngineSummary> Engine::summary(std::chrono::milliseconds patience) {
  return ask([this](const Ledger&) { return impl_->summarise(); }, patience);
}

Result<Engine::NodeFits> Engine::fits(const std::vector<PendingContainer>& pending, std::chrono::milliseconds patience,
                                      MayGoOn may_go_on) {
  struct State {
    Ledger ledger;
    Placer placer;
    bool reconciled;
  };
  const auto state = ask(
      [this](const Ledger& ledger) {
        return State{ledger, impl_->placer.with_clock_stopped(), impl_->reconciled};
      },
      patience);
  if (!state) return state.error();
  Result<Fits> fits = compute_fits(state->placer, state->ledger, pending, std::move(may_go_on));
  if (!fits) return fits.error();
  return NodeFits{*std::move(fits), state->reconciled};
}

Result<Engine::NodeFits> Engine::fits(const std::vector<PendingContainer>& pending, MayGoOn may_go_on) const {
  Result<Fits> fits = compute_fits(impl_->placer, impl_->committer.ledger(), pending, std::move(may_go_on));
  if (!fits) return fits.error();
  return NodeFits{*std::move(fits), impl_->reconciled};
}

void Engine::set_capacity(CapacityRequest request, OnCapacity then) {
  impl_->loop->post([this, request = std::move(request), then = std::move(then)] {
    handle_set_capacity(impl_->handler_deps, request, impl_->clock.clock().wall(), then);
  });
}

Result<CapacityAnswer> Engine::set_capacity(CapacityRequest request, std::chrono::milliseconds patience) {
  const auto promise = std::make_shared<std::promise<Result<CapacityAnswer>>>();
  std::future<Result<CapacityAnswer>> answer = promise->get_future();
  set_capacity(std::move(request), [promise](const Result<CapacityAnswer>& answered) { promise->set_value(answered); });
  if (answer.wait_for(patience) == std::future_status::ready) return answer.get();
  return Error{Code::kUnavailable, "topoletd is busy, and may set the capacity later; `topolet capacity` shows it"};
}

void Engine::note_measured_capacity(std::uint32_t node, std::optional<std::int64_t> milli) {
  impl_->loop->post(
      [this, node, milli] { handle_measured_capacity(impl_->handler_deps, node, milli, impl_->clock.clock().wall()); });
}

void Engine::heal(bool is_dry, OnHealed then) {
  impl_->loop->post([this, is_dry, then = std::move(then)] { impl_->rebalancer.heal(is_dry, then); });
}

Result<HealReport> Engine::heal(bool is_dry, std::chrono::milliseconds patience) {
  const auto promise = std::make_shared<std::promise<Result<HealReport>>>();
  std::future<Result<HealReport>> answer = promise->get_future();
  heal(is_dry, [promise](const Result<HealReport>& healed) { promise->set_value(healed); });
  if (answer.wait_for(patience) == std::future_status::ready) return answer.get();
  return Error{Code::kUnavailable, "topoletd has not finished yet, and goes on; `topolet moves` shows what was moved"};
}

void Engine::release(bool cpusets, OnReleased then) {
  impl_->loop->post([this, cpusets, then = std::move(then)] {
    if (!impl_->reconciled)
      return then(Error{Code::kUnavailable, "topoletd does not know yet which containers run; try again"});
    impl_->releaser.release(cpusets, then);
  });
}

Result<ReleaseReport> Engine::release(bool cpusets, std::chrono::milliseconds patience) {
  const auto promise = std::make_shared<std::promise<Result<ReleaseReport>>>();
  std::future<Result<ReleaseReport>> answer = promise->get_future();
  release(cpusets, [promise](const Result<ReleaseReport>& released) { promise->set_value(released); });
  if (answer.wait_for(patience) == std::future_status::ready) return answer.get();
  return Error{Code::kUnavailable,
               "topoletd has not finished yet, and goes on; `topolet status` shows what is released"};
}

void Engine::judge_foreign_cpuset(operations::ForeignCpuset found, bool refuses,
                                  operations::OnForeignCpusetJudged judged) {
  impl_->loop->post([this, found = std::move(found), refuses, judged = std::move(judged)] {
    engine::judge_foreign_cpuset(impl_->handler_deps, found, refuses, judged);
  });
}

void Engine::read_ledger(std::function<void(const Ledger& ledger)> read_ledger) {
  impl_->loop->post([this, read_ledger = std::move(read_ledger)] { read_ledger(impl_->committer.ledger()); });
}

void Engine::read_load_subjects(std::function<void(load::Subjects)> read) {
  impl_->loop->post([this, read = std::move(read)] { read(impl_->load_subjects()); });
}

void Engine::record_event(AuditEvent event, const std::string& reason) {
  impl_->loop->post([this, event, reason] { impl_->committer.commit(event::AuditOnly{event, reason}); });
}

void Engine::change_setup(Setup setup) {
  impl_->loop->post([this, setup = std::move(setup)] { impl_->committer.commit(event::SetupChanged{setup}); });
}

void Engine::change_machine(Machine machine) {
  impl_->loop->post(
      [this, machine = std::move(machine)]() mutable { impl_->rebalancer.change_machine(std::move(machine)); });
}

void Engine::verify_cpusets() {
  impl_->loop->post([this] { impl_->mover.verify_all_in_kernel(); });
}

void Engine::create(std::shared_ptr<operations::CreateOperation> operation) {
  impl_->when_reconciled(operation, [this, operation] { CreateContainer::handle(impl_->handler_deps, operation); });
}

void Engine::update(std::shared_ptr<operations::UpdateOperation> operation) {
  impl_->when_reconciled(operation,
                         [this, operation] { UpdateContainerResources::handle(impl_->handler_deps, operation); });
}

void Engine::start(std::shared_ptr<operations::TargetOperation> operation) {
  impl_->when_reconciled(operation, [this, operation] { StartContainer::handle(impl_->handler_deps, operation); });
}

void Engine::stop(std::shared_ptr<operations::TargetOperation> operation) {
  impl_->loop->post(
      [this, operation = std::move(operation)] { StopContainer::handle(impl_->handler_deps, operation); });
}

/// Needs no hop to the loop: there is nothing to decide before it is done.
void Engine::remove(std::shared_ptr<operations::TargetOperation> operation) {
  handle_remove_container(impl_->handler_deps, operation);
}

void Engine::run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) {
  impl_->loop->post([this, operation = std::move(operation)] { handle_run_sandbox(impl_->handler_deps, operation); });
}

void Engine::stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) {
  impl_->loop->post([this, operation = std::move(operation)] { handle_stop_sandbox(impl_->handler_deps, operation); });
}

void Engine::remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) {
  impl_->loop->post(
      [this, operation = std::move(operation)] { handle_remove_sandbox(impl_->handler_deps, operation); });
}

void Engine::on_connected() {
  impl_->loop->post([this] {
    impl_->log.info("the runtime is reachable again; reconciling");
    if (impl_->reconciled) impl_->reconcile_after_outage();
  });
}

void Engine::on_exits(std::vector<operations::ExitSeen> exits) {
  if (exits.empty()) return;
  impl_->loop->post([this, exits = std::move(exits)] {
    for (const operations::ExitSeen& exit : exits) {
      impl_->exits.report(exit.container_id, {Exit::Kind::kExited, exit.exit_code});
    }
  });
}

void Engine::on_own_update(std::string container_id, operations::ContainerCpuset sent,
                           std::function<void(const operations::ContainerCpuset&)> tell) {
  impl_->loop->post([this, id = std::move(container_id), sent = std::move(sent), tell = std::move(tell)] {
    tell(impl_->mover.renew(id, sent));
  });
}

bool Engine::shows_quotas() const { return !impl_->shown_quotas.empty(); }

std::optional<operations::CfsQuota> Engine::quota_to_show(const std::string& container_id) const {
  return impl_->shown_quotas.quota_of(container_id);
}

}  // namespace topolet::engine
