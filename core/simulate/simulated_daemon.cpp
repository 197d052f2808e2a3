#include "core/simulate/simulated_daemon.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/daemon/machine.hpp"

namespace topolet::simulate {
namespace {

/// No vote is lost because this machine is busy.
constexpr std::chrono::minutes kDeadline{5};
/// The kubelet's runtime-request-timeout.
constexpr std::chrono::minutes kCallTimeout{2};

}  // namespace

/// What ends with the process. The engine goes first, then its policies.
struct SimulatedDaemon::Run {
  Run(SimulatedRuntime& runtime, std::optional<Kill>& kill, Store& kept, std::vector<DecidedRow>& decisions)
      : connection(runtime, kill), store(kept, decisions, [this] { return connection.killed(); }) {}
  ~Run() {
    if (engine) engine->stop();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Decision decide(const std::shared_ptr<const PolicyRequest>& request, const DecideRules& rules) {
    Decision decision = policies->run_as<Decision>(
        voters, [request, rules](const std::vector<Voter>& asked) { return topolet::decide(*request, rules, asked); });
    for (const Decision::BadAnswer& bad : decision.bad_answers) policies->report_bad_answer(bad.policy, bad.what);
    return decision;
  }

  RuntimeConnection connection;
  RecordingStore store;
  std::vector<Voter> voters;
  std::unique_ptr<PolicyThread> policies;
  DrivenLoop* loop = nullptr;  ///< the engine's
  std::unique_ptr<engine::Engine> engine;
};

SimulatedDaemon::SimulatedDaemon(const Setup& setup, SimulatedRuntime& runtime) : setup_(setup), runtime_(runtime) {}

SimulatedDaemon::~SimulatedDaemon() = default;

Status SimulatedDaemon::start(engine::Engine::Machine machine) {
  auto store = Store::open_in_memory("simulated", time_.now().count());
  if (!store) return store.error();
  store_ = *std::move(store);
  machine_ = std::move(machine);
  if (Status begun = begin_run(); !begun) return begun;
  work();
  return {};
}

Status SimulatedDaemon::make_policies(Run& run) const {
  const Options& options = setup_.config.options;
  for (const PluginOptions& plugin : options.plugins) {
    const auto& libraries = setup_.plugins.libraries;
    const auto library = std::find_if(libraries.begin(), libraries.end(),
                                      [&](const PluginLibrary& loaded) { return loaded.id() == plugin.name; });
    if (library == libraries.end()) continue;
    auto policy = library->create({plugin.values.begin(), plugin.values.end()}, log_, plugin_state_,
                                  options_of_others(options, plugin.name));
    if (!policy) return policy.error();
    run.voters.push_back({*policy, plugin.weight, plugin.fail_closed, plugin.required});
  }
  run.policies =
      std::make_unique<PolicyThread>(PolicyThread::Options{.deadline = kDeadline, .clock = time_.clock(), .log = log_});
  return {};
}

Status SimulatedDaemon::begin_run() {
  ++runs_;
  run_ = std::make_unique<Run>(runtime_, kill_, *store_, decisions_);
  Run& run = *run_;
  if (Status made = make_policies(run); !made) return made;
  auto loop = std::make_unique<DrivenLoop>(time_);
  run.loop = loop.get();
  run.connection.on_killed = [&run] { run.loop->stop(); };
  const PlacementOptions& placement = setup_.config.options.placement;
  engine::Engine::Options options = engine_options(placement, *machine_.topology);
  options.writing.thread = engine::Writer::Thread::kLoop;
  memory_total_bytes_ = options.demand_rules.memory_total_bytes;
  run.engine = std::make_unique<engine::Engine>(
      options, engine::Engine::Parts{
                   .runtime = run.connection,
                   .store = run.store,
                   .cpus = machine_.cpus,
                   .placing = {.topology = machine_.topology,
                               .candidates = machine_.candidates,
                               .rules = placement.rules,
                               .decide = [&run](const auto& request,
                                                const DecideRules& rules) { return run.decide(request, rules); }},
                   .kernel = engine::Kernel({}, {}),
                   .clock = time_.clock(),
                   .log = *log_,
                   .somebody_hears = [] { return true; },
                   .notify = [&run](auto event) { run.policies->notify(run.voters, std::move(event)); },
                   .tick_plugins = [&run](const auto& view) { return run.policies->tick(run.voters, view); },
                   .loop = std::move(loop)});
  return run.engine->start();
}

/// A daemon that cannot start again leaves nothing to simulate.
void SimulatedDaemon::come_back() {
  const std::optional<CallMade> in_flight = run_->connection.in_flight();
  if (!run_->connection.killed_at().empty()) killed_at_.push_back(run_->connection.killed_at());
  run_.reset();
  // What was written but not committed was never there.
  store_->roll_back();
  if (Status begun = begin_run(); !begun) throw std::runtime_error("topoletd does not start: " + begun.error().message);
  run_->loop->run();
  if (in_flight) runtime_.answer(in_flight->method, in_flight->request, in_flight->caller);
}

/// Lets it do what there is to do now; if it is killed over that, the next run does.
void SimulatedDaemon::work() {
  run_->loop->run();
  while (run_->connection.killed()) come_back();
}

void SimulatedDaemon::change_machine(engine::Engine::Machine machine) {
  machine_ = std::move(machine);
  run_->engine->change_machine(machine_);
  work();
}

Answer SimulatedDaemon::call(const std::string& method, const std::string& request) {
  const std::uint64_t run = runs_;
  std::optional<Answer> answer = call_once(method, request);
  if (!answer && runs_ != run && kubelet_repeats_) answer = call_once(method, request);
  return answer.value_or(Answer{Code::kUnavailable, "the call did not end", {}});
}

std::optional<Answer> SimulatedDaemon::call_once(const std::string& method, const std::string& request) {
  const std::uint64_t run = runs_;
  const auto call = std::make_shared<SimulatedCall>(method, request, run_->connection);
  run_->engine->on_call(call);
  work();
  const std::chrono::milliseconds timeout = time_.now() + kCallTimeout;
  // While the engine holds on to it, it waits for time to pass.
  while (!call->answer() && runs_ == run && call.use_count() > 1) {
    const auto timer = run_->loop->next_timer();
    if (!timer || *timer > timeout) break;
    advance(*timer - time_.now());
  }
  return call->answer();
}

void SimulatedDaemon::observe(const Observation& observation) {
  run_->engine->on_observed(observation);
  work();
}

void SimulatedDaemon::look(const std::function<void(const engine::Ledger& ledger)>& look) {
  run_->engine->look(look);
  work();
}

void SimulatedDaemon::advance(std::chrono::milliseconds time) {
  const std::chrono::milliseconds end = time_.now() + time;
  run_->loop->advance(time);
  while (run_->connection.killed()) {
    come_back();
    run_->loop->advance(end - time_.now());
  }
}

void SimulatedDaemon::restart() {
  kill_.reset();
  run_->connection.kill();
  work();
}

void SimulatedDaemon::kill_at(Kill kill) {
  kill_ = kill;
  kubelet_repeats_ = kill.repeat;
}

void SimulatedDaemon::forget() {
  decisions_.clear();
  killed_at_.clear();
}

}  // namespace topolet::simulate
