#include "core/daemon/engine.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace topolet {
namespace {

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

}  // namespace

Engine::Engine(Options options, Parts parts)
    : options_(std::move(options)),
      log_(parts.log),
      clock_(parts.clock),
      store_(parts.store),
      client_(parts.runtime, options_.demand_rules),
      journal_(parts.store, parts.clock, parts.log),
      lanes_({.apply = [this](const std::string& id, const CpusetTarget& target,
                              std::function<void(Status)> done) { effect_.apply(id, target, std::move(done)); },
              .after = [this](std::chrono::milliseconds delay,
                              std::function<void()> then) { loop_.after(delay, std::move(then)); }}),
      bookings_({Ledger(std::move(parts.cpus), 0), journal_, lanes_, parts.clock, parts.log}),
      sandboxes_(journal_, options_.handlers),
      effect_({loop_, client_, std::move(parts.kernel), parts.log}),
      placer_(std::move(parts.placing)),
      room_{loop_, bookings_, sandboxes_, lanes_, effect_, placer_, options_.demand_rules, clock_, log_},
      creates_(room_),
      lifecycle_(room_),
      reconciler_(room_, lifecycle_) {
  lifecycle_.reconcile = [this](std::function<void()> then) {
    reconciler_.run([then = std::move(then)](const Status&) { then(); });
  };
  effect_.on_exited = [this](const std::string& id) { lifecycle_.ended(id, "exited"); };
}

Engine::~Engine() { stop(); }

Status Engine::start() {
  Result<std::vector<LiveRow>> live = store_.live();
  if (!live) return live.error();
  Result<std::vector<PodRow>> pods = store_.pods();
  if (!pods) return pods.error();
  Result<std::uint64_t> generation = store_.last_generation();
  if (!generation) return generation.error();
  loop_.post([this, live = *std::move(live), pods = *std::move(pods), generation = *generation] {
    sandboxes_.load(pods);
    bookings_.load(live, generation);
    reconcile_first();
    tick();
  });
  return {};
}

void Engine::stop() {
  loop_.stop();
  held_.clear();
}

void Engine::on_call(std::shared_ptr<Call> call) {
  loop_.post([this, call = std::move(call)] { handle(call); });
}

void Engine::on_connected() {
  loop_.post([this] {
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

void Engine::on_observed(std::string_view method, const std::string& request, const std::string& response) {
  std::vector<ContainerInfo> containers;
  if (method == "ListContainers") {
    auto list = read_list_containers(request, response);
    if (list) containers = std::move(list->containers);
  } else {
    auto detail = read_container_status(response, options_.demand_rules);
    if (detail) containers.push_back(std::move(detail->info));
  }
  std::erase_if(containers, [](const ContainerInfo& c) { return c.state != ContainerState::kExited; });
  if (!containers.empty()) {
    loop_.post([this, containers = std::move(containers)] { observe_states(containers); });
  }
}

void Engine::observe_states(const std::vector<ContainerInfo>& containers) {
  for (const ContainerInfo& container : containers) lifecycle_.ended(container.id, "exited");
}

void Engine::reconcile_first() {
  reconciler_.run([this](const Status& status) {
    release_held(status);
    if (status) {
      if (std::exchange(complained_, false)) log_.info("the runtime answers; containers are placed from now on");
      return;
    }
    if (!std::exchange(complained_, true)) {
      log_.warn("the runtime cannot be asked what it runs: {}; containers are placed once it can",
                status.error().message);
    }
    loop_.after(options_.first_reconcile_retry, [this] { reconcile_first(); });
  });
}

void Engine::release_held(const Status& reconciled) {
  reconciled_ = reconciled.ok();
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

void Engine::tick() {
  loop_.after(kTick, [this] { tick(); });
  journal_.catch_up();
  if (!reconciled_) return;
  reconciler_.expire(options_.pending_timeout);
  const auto now = clock_.steady();
  if (now - last_reconcile_ < options_.reconcile_every && !reconciler_.has_doubts()) return;
  last_reconcile_ = now;
  reconciler_.run([this](const Status& status) {
    if (!status) log_.debug("could not reconcile: {}", status.error().message);
  });
}

}  // namespace topolet
