#include "core/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/cri/messages/ended_containers.hpp"
#include "core/cri/messages/intercepted_methods.hpp"
#include "core/engine/handlers/create_container.hpp"
#include "core/engine/handlers/pod_sandboxes.hpp"
#include "core/engine/handlers/start_container.hpp"
#include "core/engine/handlers/stop_container.hpp"
#include "core/engine/handlers/update_container_resources.hpp"
#include "core/engine/state/codec.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr std::size_t kLongestSource = 64;

bool is_source(const std::string& text) {
  return !text.empty() && text.size() <= kLongestSource && text == printable(text, kLongestSource);
}

/// The node's nominal capacity, if that can be told of it.
Result<std::int64_t> check_capacity(const Engine::CapacityRequest& request, const topology::Topology& topology,
                                    std::chrono::milliseconds now) {
  const topology::Node* node = topology.node(request.node);
  if (node == nullptr) {
    return Error{Code::kNotFound, fmt::format("there is no NUMA node {}; `topolet nodes` lists them", request.node)};
  }
  if (!is_source(request.source)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the source of a capacity must be 1 to {} printable ASCII characters; it says who told it",
                             kLongestSource)};
  }
  if (!request.milli) return nominal_milli(&topology, request.node);
  if (node->memory_only) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("NUMA node {} has no CPUs, and so no capacity of them; `topolet nodes` lists those that do",
                    request.node)};
  }
  if (*request.milli < 0) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the capacity of NUMA node {} cannot be {} milli-CPUs; it is 0 to {}", request.node,
                             *request.milli, nominal_milli(&topology, request.node))};
  }
  if (request.until <= now) {
    return Error{
        Code::kInvalidArgument,
        fmt::format("the capacity of NUMA node {} would have ended already; it must end in the future", request.node)};
  }
  if (request.until > now + kLongestTold) {
    return Error{Code::kInvalidArgument,
                 fmt::format("the capacity of NUMA node {} would be told for more than {} days; tell it for less, and "
                             "again while it lasts",
                             request.node, kLongestTold.count() / 24)};
  }
  return nominal_milli(&topology, request.node);
}

}  // namespace

Engine::Loaded Engine::load(store::Store& store, CpuInventory cpus) {
  Ledger ledger(std::move(cpus), 0);
  const auto rows = store.allocations();
  if (!rows) return {ledger, rows.error()};
  const auto pods = store.pods();
  if (!pods) return {ledger, pods.error()};
  const auto capacities = store.capacities();
  if (!capacities) return {ledger, capacities.error()};
  const auto generation = store.last_generation();
  if (!generation) return {ledger, generation.error()};
  const auto decision = store.last_decision();
  if (!decision) return {ledger, decision.error()};
  std::vector<Allocation> allocations;
  for (const store::AllocationRow& row : *rows) {
    Result<Allocation> allocation = decode_allocation(row);
    if (!allocation) return {ledger, allocation.error()};
    allocations.push_back(*std::move(allocation));
  }
  std::vector<Pod> known;
  for (const store::PodRow& row : *pods) {
    Result<Pod> pod = decode_pod(row);
    if (!pod) return {ledger, pod.error()};
    known.push_back(*std::move(pod));
  }
  std::vector<ToldCapacity> told;
  for (const store::CapacityRow& row : *capacities) {
    Result<ToldCapacity> capacity = decode_capacity(row);
    if (!capacity) return {ledger, capacity.error()};
    told.push_back(*std::move(capacity));
  }
  ledger = Ledger(ledger.inventory(), std::max(*generation, store.report().newest_lost_generation), *decision + 1);
  ledger.load(std::move(allocations), std::move(known), std::move(told));
  return {std::move(ledger), {}};
}

Engine::Engine(Options options, Deps deps) : Engine(std::move(options), std::move(deps), load(deps.store, deps.cpus)) {}

// By reference, as `deps` is read for `loaded` too, in whatever order.
Engine::Engine(Options&& options, Deps&& deps, Loaded loaded)
    : options_(std::move(options)),
      log_(deps.log),
      clock_(std::move(deps.clock)),
      tick_plugins_(std::move(deps.tick_plugins)),
      load_status_(std::move(loaded.status)),
      newest_lost_generation_(deps.store.report().newest_lost_generation),
      observers_(std::move(deps.observers)),
      loop_(std::move(deps.loop)),
      client_(deps.runtime, options_.demand_rules),
      placer_(std::move(deps.placer)),
      committer_({*loop_, deps.store, options_.writer_options, placer_.rules(), clock_.clock(), deps.log},
                 std::move(loaded.ledger)),
      cpusets_({*loop_, client_, std::move(deps.kernel), deps.log}),
      exits_(committer_, cpusets_),
      mover_({*loop_, committer_, cpusets_, exits_, options_.start_grace, clock_.clock(), deps.log}),
      rebalancer_({*loop_, committer_, placer_, mover_, clock_.clock(), deps.log}),
      plugin_events_(committer_,
                     {*loop_, placer_, std::move(deps.any_plugin_handles_events), std::move(deps.publish_event)}),
      reconciler_({*loop_, committer_, placer_, cpusets_, mover_, exits_, rebalancer_, options_.placed_runtime_handlers,
                   newest_lost_generation_ > 0, options_.doubt_timeout, options_.start_grace, clock_.clock(), deps.log,
                   options_.kubelet_cpus}),
      handler_deps_{*loop_,
                    committer_,
                    placer_,
                    cpusets_,
                    mover_,
                    exits_,
                    rebalancer_,
                    reconciler_,
                    options_.placed_runtime_handlers,
                    options_.demand_rules,
                    log_} {}

Engine::~Engine() { stop(); }

Status Engine::start() {
  if (!load_status_) return load_status_;
  loop_->post([this] { begin(); });
  return {};
}

void Engine::begin() {
  for (Observer* observer : observers_) {
    observer->on_loaded(committer_.ledger());
    committer_.subscribe(*observer);
  }
  if (newest_lost_generation_ > 0) {
    committer_.commit(event::AuditOnly{
        AuditEvent::kGap,
        fmt::format("the state database lost its newest changes: it ends before generation {}, which topoletd acted on "
                    "in this boot; which containers run is read from the runtime",
                    newest_lost_generation_)});
  }
  plugin_events_.publish_known(committer_.ledger());
  committer_.commit(event::Restarted{newest_lost_generation_ > 0, placer_.topology(), options_.setup});
  reconcile_at_start();
  tick();
}

bool Engine::stop() {
  loop_->stop();
  const bool ended = committer_.stop();
  deferred_calls_.clear();
  return ended;
}

Result<EngineSummary> Engine::summary(std::chrono::milliseconds patience) {
  return ask([this](const Ledger&) { return summarise(); }, patience);
}

Result<Engine::NodeFits> Engine::fits(const std::vector<placement::Workload>& pending,
                                      std::chrono::milliseconds patience) {
  struct State {
    Ledger ledger;
    Placer placer;
    bool reconciled;
  };
  const auto state = ask([this](const Ledger& ledger) { return State{ledger, placer_, reconciled_}; }, patience);
  if (!state) return state.error();
  return NodeFits{compute_fits(state->placer, state->ledger, pending), state->reconciled};
}

Engine::NodeFits Engine::fits(const std::vector<placement::Workload>& pending) const {
  return NodeFits{compute_fits(placer_, committer_.ledger(), pending), reconciled_};
}

EngineSummary Engine::summarise() const {
  const Ledger& ledger = committer_.ledger();
  const placement::LedgerSnapshot view = ledger.snapshot();
  EngineSummary summary{.containers = {},
                        .generation = view.generation,
                        .allowed = view.allowed,
                        .pool = view.pool,
                        .reserved = view.reserved,
                        .exclusive = view.exclusive,
                        .withheld = view.withheld,
                        .reconciled = reconciled_,
                        .store_degraded = committer_.degraded(),
                        .store_degraded_because = committer_.degraded_because(),
                        .overlaps = mover_.overlaps(),
                        .store_reopened_because = committer_.reopened_because()};
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.phase == Phase::kCrashed) continue;
    ++summary.containers[std::string(to_string(allocation.placement.mode))];
    if (allocation.squeeze != Squeeze::kNone) ++summary.squeezed;
    if (allocation.squeeze == Squeeze::kLeftToKernel) ++summary.left_to_kernel;
  }
  for (const auto& [node, told] : ledger.told_capacities())
    summary.capacities.push_back({told, nominal_milli(placer_.topology().get(), node)});
  return summary;
}

void Engine::set_capacity(CapacityRequest request, OnCapacity then) {
  loop_->post([this, request = std::move(request), then = std::move(then)] { change_capacity(request, then); });
}

Result<Engine::CapacityAnswer> Engine::set_capacity(CapacityRequest request, std::chrono::milliseconds patience) {
  const auto promise = std::make_shared<std::promise<Result<CapacityAnswer>>>();
  std::future<Result<CapacityAnswer>> answer = promise->get_future();
  set_capacity(std::move(request), [promise](const Result<CapacityAnswer>& answered) { promise->set_value(answered); });
  if (answer.wait_for(patience) == std::future_status::ready) return answer.get();
  return Error{Code::kUnavailable, "topoletd is busy, and may set the capacity later; `topolet capacity` shows it"};
}

void Engine::change_capacity(const CapacityRequest& request, const OnCapacity& then) {
  const Result<std::int64_t> nominal = check_capacity(request, *placer_.topology(), clock_.clock().wall());
  if (!nominal) return then(nominal.error());
  const auto& told = committer_.ledger().told_capacities();
  const std::int64_t milli = std::min(request.milli.value_or(*nominal), *nominal);
  const CapacityAnswer answer{milli, *nominal, told.count(request.node) != 0};
  const auto when_done = [then, answer] { then(answer); };
  if (!request.milli) return committer_.commit(event::CapacityCleared{request.node, request.source}, when_done);
  committer_.commit(event::CapacityTold{request.node, milli, request.until, request.source}, when_done);
}

void Engine::read_ledger(std::function<void(const Ledger& ledger)> read_ledger) {
  loop_->post([this, read_ledger = std::move(read_ledger)] { read_ledger(committer_.ledger()); });
}

void Engine::record_event(AuditEvent event, const std::string& reason) {
  loop_->post([this, event, reason] { committer_.commit(event::AuditOnly{event, reason}); });
}

void Engine::change_setup(Setup setup) {
  loop_->post([this, setup = std::move(setup)] { committer_.commit(event::SetupChanged{setup}); });
}

void Engine::change_machine(Machine machine) {
  loop_->post([this, machine = std::move(machine)]() mutable { rebalancer_.change_machine(std::move(machine)); });
}

void Engine::verify_cpusets() {
  loop_->post([this] { mover_.verify_all_in_kernel(); });
}

void Engine::on_call(std::shared_ptr<cri::Call> call) {
  const cri::Interception* interception = cri::find_interception(call->method());
  // Its handler needs no hop to the loop: there is nothing to decide before the runtime is asked.
  if (interception != nullptr && interception->method == cri::InterceptedMethod::kRemoveContainer) {
    return dispatch(*interception, call);
  }
  loop_->post([this, call = std::move(call)] { handle(call); });
}

void Engine::on_connected() {
  loop_->post([this] {
    log_.info("the runtime is reachable again; reconciling");
    if (reconciled_) reconciler_.run([](const Status&) {});
  });
}

void Engine::handle(const std::shared_ptr<cri::Call>& call) {
  const cri::Interception* interception = cri::find_interception(call->method());
  if (interception == nullptr) return pass_through(call);
  if (!reconciled_ && interception->needs_ledger) {
    deferred_calls_.push_back(call);
  } else {
    dispatch(*interception, call);
  }
}

void Engine::dispatch(const cri::Interception& interception, const std::shared_ptr<cri::Call>& call) {
  switch (interception.method) {
    case cri::InterceptedMethod::kRunPodSandbox:
      return handle_run_pod_sandbox(handler_deps_, call);
    case cri::InterceptedMethod::kStopPodSandbox:
      return handle_stop_pod_sandbox(handler_deps_, call);
    case cri::InterceptedMethod::kRemovePodSandbox:
      return handle_remove_pod_sandbox(handler_deps_, call);
    case cri::InterceptedMethod::kCreateContainer:
      return CreateContainer::handle(handler_deps_, call);
    case cri::InterceptedMethod::kStartContainer:
      return StartContainer::handle(handler_deps_, call);
    case cri::InterceptedMethod::kStopContainer:
      return StopContainer::handle(handler_deps_, call);
    case cri::InterceptedMethod::kRemoveContainer:
      return handle_remove_container(handler_deps_, call);
    case cri::InterceptedMethod::kUpdateContainerResources:
      return UpdateContainerResources::handle(handler_deps_, call);
  }
}

void Engine::on_observed(const cri::ObservedMessage& observation) {
  std::vector<cri::EndedContainer> ended = cri::read_ended_containers(observation);
  if (ended.empty()) return;
  loop_->post([this, ended = std::move(ended)] {
    for (const cri::EndedContainer& container : ended) {
      exits_.report(container.id, {Exit::Kind::kExited, container.exit_code});
    }
  });
}

void Engine::reconcile_at_start() {
  reconciler_.run([this](const Status& status) {
    // Before the first decision, so that plugins know the machine as it is before anything changes.
    if (status) tick_plugins();
    release_deferred(status);
    if (status) {
      if (std::exchange(warned_unreachable_, false))
        log_.info("the runtime answers; containers are placed from now on");
      return;
    }
    if (!std::exchange(warned_unreachable_, true)) {
      log_.warn("the runtime cannot be asked what it runs: {}; containers are placed once it can",
                status.error().message);
    }
    loop_->after(options_.first_reconcile_retry, [this] { reconcile_at_start(); });
  });
}

void Engine::release_deferred(const Status& reconciled) {
  reconciled_ = reconciled.has_value();
  if (reconciled_) {
    rebalancer_.begin();
    committer_.when_durable([this] {
      for (Observer* observer : observers_) observer->on_reconciled();
    });
  }
  std::vector<std::shared_ptr<cri::Call>> held;
  held.swap(deferred_calls_);
  for (const std::shared_ptr<cri::Call>& call : held) {
    if (reconciled_) {
      dispatch(*cri::find_interception(call->method()), call);
    } else {
      call->reject(
          {Code::kUnavailable, "topolet places no container before it knows what runs: " + reconciled.error().message});
    }
  }
}

void Engine::tick_plugins() {
  if (!tick_plugins_) return;
  const std::vector<plugin::MoveRequest> requests = tick_plugins_([this] {
    return std::make_shared<const plugin::TickSnapshot>(
        plugin::TickSnapshot{placer_.topology(), committer_.ledger().snapshot()});
  });
  for (const plugin::MoveRequest& request : requests) rebalancer_.move_as_requested(request);
}

void Engine::tick() {
  loop_->after(kTick, [this] { tick(); });
  follow_clock();
  if (!committer_.ledger().told_capacities().empty()) committer_.commit(event::CapacityTimePassed{});
  if (!reconciled_) return;
  reconciler_.expire();
  mover_.resolve_unfinished_starts();
  tick_plugins();
  const auto now = clock_.clock().steady();
  if (now - last_reconcile_ < options_.reconcile_every && !reconciler_.has_creates_in_doubt()) return;
  last_reconcile_ = now;
  reconciler_.run([this](const Status& status) {
    if (!status) return log_.debug("could not reconcile: {}", status.error().message);
    rebalancer_.retry();
  });
}

/// What counts from a moment of the wall clock goes on counting when the clock is set.
void Engine::follow_clock() {
  if (const auto set_by = clock_.follow()) committer_.commit(event::ClockSet{*set_by});
}

}  // namespace topolet::engine
