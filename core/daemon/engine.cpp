#include "core/daemon/engine.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <utility>

namespace topolet {
namespace {

std::string_view short_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

struct Handler {
  std::string_view method;
  void (Lifecycle::*handle)(const std::shared_ptr<Call>&);
  bool waits_for_reconcile;
};

constexpr std::array<Handler, 7> kHandlers = {{
    {"RunPodSandbox", &Lifecycle::run_pod_sandbox, false},
    {"StopPodSandbox", &Lifecycle::stop_pod_sandbox, false},
    {"RemovePodSandbox", &Lifecycle::remove_pod_sandbox, false},
    {"StartContainer", &Lifecycle::start_container, true},
    {"StopContainer", &Lifecycle::stop_container, false},
    {"RemoveContainer", &Lifecycle::remove_container, false},
    {"UpdateContainerResources", &Lifecycle::update_container_resources, true},
}};

const Handler* find_handler(std::string_view method) {
  const auto* const found = std::find_if(kHandlers.begin(), kHandlers.end(),
                                         [&](const Handler& handler) { return handler.method == method; });
  return found == kHandlers.end() ? nullptr : found;
}

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
  const std::string_view method = short_name(answer.path);
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

Engine::Engine(Options options, Parts parts)
    : options_(std::move(options)),
      log_(parts.log),
      clock_(parts.clock),
      somebody_hears_(std::move(parts.somebody_hears)),
      notify_(std::move(parts.notify)),
      tick_plugins_(std::move(parts.tick_plugins)),
      store_(parts.store),
      loop_(std::move(parts.loop)),
      client_(parts.runtime, options_.demand_rules),
      journal_(parts.store, parts.clock, parts.log),
      lanes_({.apply = [this](const std::string& id, const CpusetTarget& target,
                              std::function<void(Status)> done) { effect_.apply(id, target, std::move(done)); },
              .after = [this](std::chrono::milliseconds delay,
                              std::function<void()> then) { loop_->after(delay, std::move(then)); }}),
      bookings_({Ledger(std::move(parts.cpus), 0), journal_, lanes_, parts.clock, parts.log,
                 [this](Happening::Kind kind, const Holding& holding) { tell_plugins(kind, holding); },
                 [this] { take_up_later(); }}),
      sandboxes_(journal_, options_.handlers),
      effect_({*loop_, client_, std::move(parts.kernel), parts.log}),
      placer_(std::move(parts.placing)),
      room_{*loop_, bookings_, sandboxes_, lanes_, effect_, placer_, options_.demand_rules, clock_, log_},
      creates_(room_),
      lifecycle_(room_),
      reconciler_(room_, lifecycle_) {
  lifecycle_.reconcile = creates_.reconcile = [this](std::function<void()> then) {
    reconciler_.run([then = std::move(then)](const Status&) { then(); });
  };
  creates_.bound = [this](const ContainerKey& key) { lifecycle_.catch_up(key); };
  effect_.on_exited = [this](const std::string& id) { lifecycle_.exited(id, [] {}); };
}

Engine::~Engine() { stop(); }

Status Engine::start() {
  Result<std::vector<LiveRow>> live = store_.live();
  if (!live) return live.error();
  Result<std::vector<PodRow>> pods = store_.pods();
  if (!pods) return pods.error();
  Result<std::uint64_t> generation = store_.last_generation();
  if (!generation) return generation.error();
  loop_->post([this, live = *std::move(live), pods = *std::move(pods), generation = *generation] {
    sandboxes_.load(pods);
    bookings_.load(live, generation);
    reconcile_first();
    tick();
  });
  return {};
}

void Engine::stop() {
  loop_->stop();
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
  const Ledger& ledger = bookings_.ledger();
  const LedgerView view = ledger.view();
  EngineSummary summary{.containers = {},
                        .generation = view.generation,
                        .allowed = view.allowed,
                        .pool = view.pool,
                        .reserved = view.reserved,
                        .exclusive = view.exclusive,
                        .withheld = view.withheld,
                        .reconciled = reconciled_,
                        .store_degraded = journal_.degraded()};
  for (const auto& [key, holding] : ledger.holdings()) {
    if (holding.state == HoldingState::kCrashed) continue;
    ++summary.containers[std::string(to_string(holding.placement.mode))];
  }
  return summary;
}

void Engine::look(std::function<void(const Ledger& ledger)> look) {
  loop_->post([this, look = std::move(look)] { look(bookings_.ledger()); });
}

void Engine::remark(const std::string& event, const std::string& reason) {
  DecidedRow row;
  row.at_ms = clock_.wall().count();
  row.event = event;
  row.reason = reason;
  row.holds = false;
  loop_->post([this, row = std::move(row)]() mutable {
    row.generation = bookings_.ledger().generation();
    journal_.write([row = std::move(row)](Store& store) -> Status {
      const auto added = store.add(row);
      return added ? Status() : Status(added.error());
    });
  });
}

void Engine::change_machine(Machine machine) {
  loop_->post([this, machine = std::move(machine)]() mutable {
    const CpuSet allowed = machine.cpus.allowed;
    const CpuSet allowed_before = bookings_.ledger().rules().allowed;
    const std::vector<Candidate> candidates_before = placer_.candidates();
    lifecycle_.note_who_is_narrowed(allowed_before, candidates_before);
    placer_.set_machine(std::move(machine.topology), std::move(machine.candidates));
    bookings_.set_rules(std::move(machine.cpus));
    lifecycle_.leave_all_but(allowed);
    lifecycle_.take_up_what_came(allowed_before, candidates_before);
  });
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
  const Handler* handler = find_handler(call->method());
  const bool waits = handler == nullptr || handler->waits_for_reconcile;
  if (!reconciled_ && waits) {
    held_.push_back(call);
  } else {
    dispatch(call);
  }
}

void Engine::dispatch(const std::shared_ptr<Call>& call) {
  if (const Handler* handler = find_handler(call->method()); handler != nullptr) {
    (lifecycle_.*handler->handle)(call);
  } else {
    creates_.handle(call);
  }
}

void Engine::on_observed(Observation observation) {
  loop_->post([this, observation = std::move(observation)] { observe(observation); });
}

void Engine::observe(const Observation& observation) {
  for (const std::string& id : ended_containers(observation, options_.demand_rules)) lifecycle_.exited(id, [] {});
}

void Engine::reconcile_first() {
  reconciler_.run([this](const Status& status) {
    // Before the first decision, so that plugins know the machine as it is before anything changes.
    if (status) tick_plugins();
    release_held(status);
    if (status) {
      if (std::exchange(complained_, false)) log_.info("the runtime answers; containers are placed from now on");
      return;
    }
    if (!std::exchange(complained_, true)) {
      log_.warn("the runtime cannot be asked what it runs: {}; containers are placed once it can",
                status.error().message);
    }
    loop_->after(options_.first_reconcile_retry, [this] { reconcile_first(); });
  });
}

void Engine::release_held(const Status& reconciled) {
  reconciled_ = reconciled.ok();
  // CPUs may have gone offline while nobody looked.
  if (reconciled) {
    lifecycle_.leave_all_but(bookings_.ledger().rules().allowed);
    lifecycle_.take_up();
  }
  std::vector<std::shared_ptr<Call>> held;
  held.swap(held_);
  for (const std::shared_ptr<Call>& call : held) {
    if (reconciled) {
      dispatch(call);
    } else {
      call->reject(
          {Code::kUnavailable, "topolet places no container before it knows what runs: " + reconciled.error().message});
    }
  }
}

/// Once for all that is given back at a time.
void Engine::take_up_later() {
  if (std::exchange(will_take_up_, true)) return;
  loop_->post([this] {
    will_take_up_ = false;
    if (reconciled_) lifecycle_.take_up();
  });
}

/// Later, so that nobody's call waits for what plugins do with it.
void Engine::tell_plugins(Happening::Kind kind, const Holding& holding) {
  if (!somebody_hears_ || !somebody_hears_()) return;
  auto happening =
      std::make_shared<const Happening>(Happening{kind, holding.workload, holding.placement, placer_.topology()});
  loop_->post([this, happening = std::move(happening)] { notify_(happening); });
}

void Engine::tick_plugins() {
  if (!tick_plugins_) return;
  const std::vector<ReplacementWish> wishes = tick_plugins_([this] {
    return std::make_shared<const TickView>(TickView{placer_.topology(), bookings_.ledger().view()});
  });
  for (const ReplacementWish& wish : wishes) lifecycle_.re_place(wish);
}

void Engine::tick() {
  loop_->after(kTick, [this] { tick(); });
  journal_.catch_up();
  if (!reconciled_) return;
  reconciler_.expire(options_.pending_timeout);
  tick_plugins();
  const auto now = clock_.steady();
  if (now - last_reconcile_ < options_.reconcile_every && !reconciler_.has_doubts()) return;
  last_reconcile_ = now;
  reconciler_.run([this](const Status& status) {
    if (!status) log_.debug("could not reconcile: {}", status.error().message);
  });
}

}  // namespace topolet
