#include "core/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "core/cri/intercepted_methods.hpp"
#include "core/cri/methods.hpp"
#include "core/engine/handlers/create_container.hpp"
#include "core/engine/handlers/end_container.hpp"
#include "core/engine/handlers/pods.hpp"
#include "core/engine/handlers/start_container.hpp"
#include "core/engine/handlers/update_container_resources.hpp"
#include "core/engine/state/codec.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::seconds kTick{1};

std::vector<std::string> exited_of(const std::vector<ContainerInfo>& containers) {
  std::vector<std::string> ids;
  for (const ContainerInfo& container : containers) {
    if (container.state == ContainerState::kExited) ids.push_back(container.id);
  }
  return ids;
}

/// What an answer tells of containers that are over. What cannot be read was the client's to complain about.
std::vector<std::string> ended_containers(const Observation& answer, const DemandRules& rules) {
  const std::string_view method = parse_method(answer.path).name;
  if (method == "GetContainerEvents") {
    const auto id = read_end_event(answer.response);
    return id && !id->empty() ? std::vector<std::string>{*id} : std::vector<std::string>{};
  }
  if (method == "ContainerStatus") {
    const auto detail = read_container_status(answer.response, rules);
    return detail ? exited_of({detail->info}) : std::vector<std::string>{};
  }
  // A list, as a whole or in pieces.
  const auto list = read_list_containers(answer.request, answer.response);
  return list ? exited_of(list->containers) : std::vector<std::string>{};
}

}  // namespace

Engine::Loaded Engine::load(Store& store, LedgerRules cpus) {
  Ledger ledger(std::move(cpus), 0);
  const auto live = store.live();
  if (!live) return {ledger, live.error()};
  const auto pods = store.pods();
  if (!pods) return {ledger, pods.error()};
  const auto generation = store.last_generation();
  if (!generation) return {ledger, generation.error()};
  const auto decision = store.last_decision();
  if (!decision) return {ledger, decision.error()};
  std::vector<Allocation> allocations;
  for (const LiveRow& row : *live) {
    Result<Allocation> allocation = decode_allocation(row);
    if (!allocation) return {ledger, allocation.error()};
    allocations.push_back(*std::move(allocation));
  }
  std::vector<Pod> known;
  for (const PodRow& row : *pods) {
    Result<Pod> pod = decode_pod(row);
    if (!pod) return {ledger, pod.error()};
    known.push_back(*std::move(pod));
  }
  ledger = Ledger(ledger.rules(), std::max(*generation, store.report().lost_after), *decision + 1);
  ledger.load(std::move(allocations), std::move(known));
  return {std::move(ledger), {}};
}

Engine::Engine(Options options, Parts parts)
    : Engine(std::move(options), std::move(parts), load(parts.store, parts.cpus)) {}

// By reference, as `parts` is read for `loaded` too, in whatever order.
Engine::Engine(Options&& options, Parts&& parts, Loaded loaded)
    : options_(std::move(options)),
      log_(parts.log),
      clock_(std::move(parts.clock)),
      tick_plugins_(std::move(parts.tick_plugins)),
      loaded_(std::move(loaded.status)),
      lost_after_(parts.store.report().lost_after),
      loop_(std::move(parts.loop)),
      client_(parts.runtime, options_.demand_rules),
      placer_(std::move(parts.placing)),
      committer_({*loop_, parts.store, options_.writing, placer_.rules(), clock_.clock(), parts.log},
                 std::move(loaded.ledger)),
      cpusets_({*loop_, client_, std::move(parts.kernel), parts.log}),
      exits_(committer_, cpusets_),
      mover_({*loop_, committer_, cpusets_, exits_, options_.start_grace, clock_.clock(), parts.log}),
      rebalancer_({*loop_, committer_, placer_, mover_, clock_.clock(), parts.log}),
      plugin_events_(committer_, {*loop_, placer_, std::move(parts.somebody_hears), std::move(parts.notify)}),
      reconciler_({*loop_, committer_, placer_, cpusets_, mover_, exits_, rebalancer_, options_.handlers,
                   lost_after_ > 0, options_.pending_timeout, options_.start_grace, clock_.clock(), parts.log}),
      handlers_{*loop_, committer_,  placer_,     cpusets_,          mover_,
                exits_, rebalancer_, reconciler_, options_.handlers, options_.demand_rules,
                log_} {}

Engine::~Engine() { stop(); }

Status Engine::start() {
  if (!loaded_) return loaded_;
  loop_->post([this] { begin(); });
  return {};
}

void Engine::begin() {
  if (lost_after_ > 0) {
    committer_.commit(event::Noted{
        "gap", fmt::format("the state database went back: generation {} was committed in this boot, and what is there "
                           "ends before; what runs is taken from the runtime",
                           lost_after_)});
  }
  plugin_events_.tell_known(committer_.ledger());
  committer_.commit(event::Restarted{lost_after_ > 0});
  reconcile_first();
  tick();
}

void Engine::stop() {
  loop_->stop();
  committer_.stop();
  held_.clear();
}

Result<EngineSummary> Engine::summary(std::chrono::milliseconds patience) {
  const auto promise = std::make_shared<std::promise<EngineSummary>>();
  std::future<EngineSummary> future = promise->get_future();
  loop_->post([this, promise] { promise->set_value(summarise()); });
  if (future.wait_for(patience) == std::future_status::ready) return future.get();
  return Error{Code::kUnavailable, "topoletd is busy placing containers; try again"};
}

EngineSummary Engine::summarise() const {
  const Ledger& ledger = committer_.ledger();
  const LedgerView view = ledger.view();
  EngineSummary summary{.containers = {},
                        .generation = view.generation,
                        .allowed = view.allowed,
                        .pool = view.pool,
                        .reserved = view.reserved,
                        .exclusive = view.exclusive,
                        .withheld = view.withheld,
                        .reconciled = reconciled_,
                        .store_degraded = committer_.degraded()};
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.phase == Phase::kCrashed) continue;
    ++summary.containers[std::string(to_string(allocation.placement.mode))];
  }
  return summary;
}

void Engine::look(std::function<void(const Ledger& ledger)> look) {
  loop_->post([this, look = std::move(look)] { look(committer_.ledger()); });
}

void Engine::remark(const std::string& event, const std::string& reason) {
  loop_->post([this, event, reason] { committer_.commit(event::Noted{event, reason}); });
}

void Engine::change_machine(Machine machine) {
  loop_->post([this, machine = std::move(machine)]() mutable { rebalancer_.change_machine(std::move(machine)); });
}

void Engine::on_call(std::shared_ptr<Call> call) {
  loop_->post([this, call = std::move(call)] { handle(call); });
}

void Engine::on_connected() {
  loop_->post([this] {
    log_.info("the runtime is reachable again; reconciling");
    if (reconciled_) reconciler_.run([](const Status&) {});
  });
}

void Engine::handle(const std::shared_ptr<Call>& call) {
  const Interception* interception = find_interception(call->method());
  if (interception == nullptr) return pass_through(call);
  if (!reconciled_ && interception->needs_ledger) {
    held_.push_back(call);
  } else {
    dispatch(*interception, call);
  }
}

void Engine::dispatch(const Interception& interception, const std::shared_ptr<Call>& call) {
  switch (interception.method) {
    case InterceptedMethod::kRunPodSandbox:
      return handle_run_pod_sandbox(handlers_, call);
    case InterceptedMethod::kStopPodSandbox:
      return handle_stop_pod_sandbox(handlers_, call);
    case InterceptedMethod::kRemovePodSandbox:
      return handle_remove_pod_sandbox(handlers_, call);
    case InterceptedMethod::kCreateContainer:
      return CreateContainer::handle(handlers_, call);
    case InterceptedMethod::kStartContainer:
      return StartContainer::handle(handlers_, call);
    case InterceptedMethod::kStopContainer:
      return StopContainer::handle(handlers_, call);
    case InterceptedMethod::kRemoveContainer:
      return handle_remove_container(handlers_, call);
    case InterceptedMethod::kUpdateContainerResources:
      return UpdateContainerResources::handle(handlers_, call);
  }
}

void Engine::on_observed(Observation observation) {
  loop_->post([this, observation = std::move(observation)] { observe(observation); });
}

void Engine::observe(const Observation& observation) {
  for (const std::string& id : ended_containers(observation, options_.demand_rules)) exits_.report(id, {});
}

void Engine::reconcile_first() {
  reconciler_.run([this](const Status& status) {
    // Before the first decision, so that plugins know the machine as it is before anything changes.
    if (status) tick_plugins();
    release_held(status);
    if (status) {
      if (std::exchange(warned_, false)) log_.info("the runtime answers; containers are placed from now on");
      return;
    }
    if (!std::exchange(warned_, true)) {
      log_.warn("the runtime cannot be asked what it runs: {}; containers are placed once it can",
                status.error().message);
    }
    loop_->after(options_.first_reconcile_retry, [this] { reconcile_first(); });
  });
}

void Engine::release_held(const Status& reconciled) {
  reconciled_ = reconciled.ok();
  if (reconciled_) rebalancer_.begin();
  std::vector<std::shared_ptr<Call>> held;
  held.swap(held_);
  for (const std::shared_ptr<Call>& call : held) {
    if (reconciled_) {
      dispatch(*find_interception(call->method()), call);
    } else {
      call->reject(
          {Code::kUnavailable, "topolet places no container before it knows what runs: " + reconciled.error().message});
    }
  }
}

void Engine::tick_plugins() {
  if (!tick_plugins_) return;
  const std::vector<ReplacementWish> wishes = tick_plugins_([this] {
    return std::make_shared<const TickView>(TickView{placer_.topology(), committer_.ledger().view()});
  });
  for (const ReplacementWish& wish : wishes) rebalancer_.replace(wish);
}

void Engine::tick() {
  loop_->after(kTick, [this] { tick(); });
  follow_clock();
  if (!reconciled_) return;
  reconciler_.expire();
  mover_.settle_starts();
  tick_plugins();
  const auto now = clock_.clock().steady();
  if (now - last_reconcile_ < options_.reconcile_every && !reconciler_.has_doubts()) return;
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
