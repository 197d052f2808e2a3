#include "core/simulate/simulated_daemon.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/cri/messages/runtime_client.hpp"
#include "core/fronts/cri/cri_front.hpp"
#include "core/machine/machine.hpp"
#include "core/placement/decide.hpp"
#include "core/plugin/host/check_annotations.hpp"
#include "core/plugin/host/common_options.hpp"
#include "core/replay/operations.hpp"
#include "core/replay/recorder.hpp"
#include "core/simulate/in_answer_front.hpp"
#include "core/simulate/nri_front.hpp"
#include "core/simulate/watch_socket.hpp"
#include "store/store.hpp"

namespace topolet::simulate {
namespace {

/// The kubelet's runtime-request-timeout.
constexpr std::chrono::minutes kCallTimeout{2};
/// The number of the only configuration that there is.
constexpr std::int64_t kSetup = 1;
/// When the time of a database begins: 2026-01-01.
constexpr std::chrono::seconds kRecordedFrom{1'767'225'600};

/// The newest runtime is simulated.
placement::Settable settable_by(SimulatedFront front) {
  return front == SimulatedFront::kCri ? placement::Settable{.through = "CRI"} : placement::all_settable("NRI");
}

void add_lost_votes(const plugin::PolicyThread& policies, std::map<std::string, plugin::LostVotes>& to) {
  for (const plugin::PluginStatistics& plugin : policies.states()) {
    if (plugin.lost.total() > 0) to[plugin.name] += plugin.lost;
  }
}

}  // namespace

/// The objects that end with the process. The engine goes first, then its policies.
struct SimulatedDaemon::Run {
  Run(SimulatedRuntime& runtime, std::optional<KillPoint>& kill, const operations::DemandRules& rules,
      store::Store& kept, RecordedDecisions& decisions, ActivityRecorder& noted)
      : activity(noted),
        connection(runtime, kill),
        runtime_client(connection, rules),
        own_updates(runtime_client),
        store(kept, decisions, [this] { return connection.killed(); }) {}
  ~Run() {
    if (watch) watch->stop();
    if (engine) engine->stop();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  placement::Decision decide(const std::shared_ptr<const placement::PolicyRequest>& request,
                             const placement::PlacementRules& rules) {
    replay::NotedDecision made = policies->run_as<replay::NotedDecision>(
        votes,
        [request, rules, notes = replay::notes_for(recorder.get())](const placement::Votes& asked) {
          return replay::decide(*request, rules, asked, notes);
        },
        request->plan_began);
    for (const placement::Decision::InvalidReply& bad : made.decision.invalid_replies)
      policies->report_invalid_reply(bad.policy, bad.what);
    if (reads_load()) made.decision.load = request->load;
    activity.add_decision(request->workload.key, made.decision.placement.added);
    if (recorder) recorder->add_decision(request, rules, made);
    return std::move(made.decision);
  }

  bool reads_load() const {
    return std::any_of(votes.begin(), votes.end(),
                       [](const plugin::PluginVote& vote) { return vote.plugin->names_read().load; });
  }

  void publish(std::shared_ptr<const plugin::ContainerEvent> container_event) {
    policies->publish(votes, container_event);
    activity.add_event(*container_event, votes);
    if (recorder) recorder->add_event(std::move(container_event));
  }

  std::vector<plugin::MoveRequest> tick(const replay::Recorder::MakeView& view) {
    std::vector<std::string> woken;
    const auto tick_policies = [&](const replay::Recorder::MakeView& seen) {
      return policies->tick(votes, seen, &woken);
    };
    return recorder ? recorder->run_tick(view, tick_policies, &woken) : tick_policies(view);
  }

  std::vector<engine::Observer*> observers() {
    std::vector<engine::Observer*> all;
    if (watch) all.push_back(&watch->observer());
    if (operations) all.push_back(operations.get());
    return all;
  }

  ActivityRecorder& activity;
  RuntimeConnection connection;
  cri::RuntimeClient runtime_client;
  nri::OwnUpdates own_updates;  ///< passes all on
  RecordingStore store;
  std::vector<plugin::PluginVote> votes;
  placement::KnownAnnotations annotations = placement::core_annotations();
  std::shared_ptr<plugin::PolicyThread> policies;
  std::unique_ptr<WatchSocket> watch;
  std::shared_ptr<replay::Recorder> recorder;             ///< null: nothing is recorded
  std::unique_ptr<replay::OperationRecorder> operations;  ///< with a recorder
  SimulatedLoop* loop = nullptr;                          ///< the engine's
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<InAnswerFront> in_answer;  ///< null: the engine tells neighbours by itself
  std::unique_ptr<cri::CriFront> front;
  std::shared_ptr<NriFront> nri_front;  ///< null: the kubelet calls `front`
};

SimulatedDaemon::SimulatedDaemon(const plugin::LoadedConfig& setup, SimulatedRuntime& runtime, std::timed_mutex& busy)
    : setup_(setup), runtime_(runtime), busy_(busy) {}

SimulatedDaemon::~SimulatedDaemon() = default;

Status SimulatedDaemon::start(engine::Engine::Machine machine, const SimulationOptions& options) {
  options_ = options;
  const std::filesystem::path& state_dir = options_.state_dir;
  // A client of the watch socket compares times with its own.
  if (!options_.watch_socket.empty())
    time_.set(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()));
  else if (!state_dir.empty())
    time_.set(kRecordedFrom);
  if (Status opened = open_store(); !opened) return opened;
  machine_ = std::move(machine);
  if (Status begun = begin_run(); !begun) return begun;
  run_until_idle();
  return {};
}

Status SimulatedDaemon::open_store() {
  constexpr const char* kBootId = "simulated";
  const std::int64_t now_ms = time_.now().count();
  const std::filesystem::path& directory = options_.state_dir;
  auto store = directory.empty() ? store::Store::open_in_memory(kBootId, now_ms)
                                 : store::Store::open({.directory = directory, .boot_id = kBootId, .now_ms = now_ms});
  if (!store) return store.error();
  store_ = *std::move(store);
  return {};
}

/// Somebody deletes the database; what else is in its directory stays.
Status SimulatedDaemon::lose_database() {
  store_.reset();
  if (!options_.state_dir.empty()) {
    for (const char* file : {"state.db", "state.db-wal", "state.db-shm"}) {
      std::error_code ignored;
      std::filesystem::remove(options_.state_dir / file, ignored);
    }
  }
  return open_store();
}

Status SimulatedDaemon::open_record(Run& run) const {
  if (options_.record.empty()) return {};
  auto recorder = replay::Recorder::open(
      {.file = options_.record, .max_bytes = options_.record_bytes, .version = TOPOLET_VERSION, .clock = time_.clock()},
      machine_.topology, log_);
  if (!recorder) return recorder.error();
  run.recorder = *std::move(recorder);
  run.operations = std::make_unique<replay::OperationRecorder>(run.recorder);
  return {};
}

Status SimulatedDaemon::make_policies(Run& run) const {
  const config::Options& options = setup_.config.options;
  auto votes =
      plugin::make_votes(setup_, activity_.log(),
                         activity_.watched(replay::recorded_state(plugin_state_, run.recorder)), machine_.topology);
  if (!votes) return votes.error();
  run.votes = *std::move(votes);
  for (const plugin::PluginVote& vote : run.votes)
    run.annotations.add_plugin(vote.name, vote.plugin->annotations(), vote.plugin->taking_annotations());
  const auto annotations = plugin::check_permitted_annotations(setup_.raw, options, run.annotations);
  if (Status read = annotations.status(); !read) return read;
  run.policies = std::make_unique<plugin::PolicyThread>(
      plugin::PolicyThread::Options{.deadline = options.placement.deadline,
                                    .decision_time = options.placement.decision_time,
                                    .clock = run.recorder ? run.recorder->clock() : time_.clock(),
                                    .log = log_});
  if (run.recorder) {
    run.recorder->announce_setup({kSetup, shown_entries(setup_, config::entries_in_force(setup_.raw))});
    plugin::NamesRead names;
    for (const plugin::PluginVote& vote : run.votes) {
      const plugin::NamesRead& read = vote.plugin->names_read();
      names.env.insert(names.env.end(), read.env.begin(), read.env.end());
      names.annotations.insert(names.annotations.end(), read.annotations.begin(), read.annotations.end());
    }
    run.recorder->use_setup(kSetup, std::move(names));
  }
  // It is the same library, whatever the daemon.
  for (const auto& left : left_policies_) {
    for (const plugin::PluginStatistics& plugin : left->states()) {
      if (plugin.has_abandoned_call)
        run.policies->quarantine(plugin.name, "a call from before the restart has not returned");
    }
  }
  return {};
}

Status SimulatedDaemon::open_watch_socket(Run& run) {
  if (options_.watch_socket.empty()) return {};
  const config::Options& options = setup_.config.options;
  WatchSocket::Options settings{
      .path = options_.watch_socket, .max_memory_bytes = options.daemon.max_memory_bytes, .plugins = {}};
  for (const config::PluginOptions& enabled : options.plugins) {
    watch::v1::Plugin& plugin = *settings.plugins.add_plugins();
    plugin.set_id(enabled.name);
    plugin.set_required(enabled.required);
    for (const plugin::PluginLibrary& library : setup_.plugins.libraries) {
      if (library.id() != enabled.name) continue;
      plugin.set_version(library.version());
      for (auto& [key, value] : config::values_without_secrets(library.options(), enabled.values))
        (*plugin.mutable_options())[key] = value;
    }
  }
  auto opened = WatchSocket::open(
      std::move(settings),
      [&run](const auto& pending, engine::MayGoOn may_go_on) {
        return run.engine->fits(pending, std::move(may_go_on));
      },
      busy_, *log_);
  if (!opened) return opened.error();
  run.watch = *std::move(opened);
  return {};
}

Status SimulatedDaemon::begin_run() {
  ++runs_;
  const config::PlacementOptions& placement = setup_.config.options.placement;
  engine::Engine::Options options = machine::engine_options(placement, *machine_.topology);
  memory_total_bytes_ = options.demand_rules.memory_total_bytes;
  run_ = std::make_unique<Run>(runtime_, kill_, options.demand_rules, *store_, decisions_, activity_);
  Run& run = *run_;
  if (Status opened = open_record(run); !opened) return opened;
  if (Status made = make_policies(run); !made) return made;
  if (Status opened = open_watch_socket(run); !opened) return opened;
  auto loop = std::make_unique<SimulatedLoop>(time_);
  run.loop = loop.get();
  run.connection.on_killed = [&run] { run.loop->stop(); };
  if (options_.update_time) {
    run.connection.delay_update = [this, &run](std::function<void()> update) {
      run.loop->after(options_.update_time(), std::move(update));
    };
  }
  options.writer_options.thread = engine::WriterThread::kLoop;
  options.writer_options.transaction_time = options_.transaction_time;
  run.engine = std::make_unique<engine::Engine>(
      options,
      engine::Engine::Deps{
          .runtime = run.own_updates,
          .store = run.store,
          .cpus = machine_.cpus,
          .placer = {.topology = machine_.topology,
                     .candidates = machine_.candidates,
                     .rules = machine::placement_rules(placement),
                     .decide = [&run](const auto& request,
                                      const placement::PlacementRules& rules) { return run.decide(request, rules); },
                     .annotations = [&run] { return run.annotations; },
                     .any_rdt_class = true,
                     .settable = [this] { return settable_by(options_.front); },
                     .load = load_},
          .kernel = engine::ProcessCgroups([this](std::int64_t pid) { return runtime_.kernel_cpus(pid); },
                                           [this](std::int64_t pid) { return runtime_.kernel_cpus(pid); },
                                           [this](std::int64_t pid) { return runtime_.kernel_resources(pid); }),
          .clock = time_.clock(),
          .log = *log_,
          .any_plugin_handles_events = [] { return true; },
          .publish_event = [&run](auto event) { run.publish(std::move(event)); },
          .tick_plugins = [&run](const auto& view) { return run.tick(view); },
          .besteffort_share = [&run] { return plugin::besteffort_share_of(run.votes, run.policies->states()); },
          .observers = run.observers(),
          .loop = std::move(loop)});
  if (options_.front == SimulatedFront::kInAnswer)
    run.in_answer = std::make_unique<InAnswerFront>(*run.engine, run.connection);
  operations::OperationHandler& handler =
      run.in_answer ? static_cast<operations::OperationHandler&>(*run.in_answer) : *run.engine;
  run.front = std::make_unique<cri::CriFront>(cri::CriFront::Deps{handler, options.demand_rules, *log_});
  if (options_.front == SimulatedFront::kNri) open_nri_front(run, options.demand_rules);
  return run.engine->start();
}

void SimulatedDaemon::open_nri_front(Run& run, const operations::DemandRules& rules) {
  run.nri_front =
      std::make_shared<NriFront>(NriFront::Deps{*run.engine, run.own_updates, rules, runtime_, run.connection,
                                                [&run](std::chrono::milliseconds delay, std::function<void()> work) {
                                                  run.loop->after(delay, std::move(work));
                                                }});
  run.own_updates.set_asked(true);
  run.connection.pass_update = [&run](const std::string& request, std::function<void(const std::string&)> send) {
    run.nri_front->on_own_update(request, std::move(send));
  };
}

void SimulatedDaemon::end_run() {
  const std::shared_ptr<plugin::PolicyThread> policies = run_->policies;
  run_.reset();
  add_lost_votes(*policies, lost_before_);
  if (policies->has_abandoned_calls()) left_policies_.push_back(policies);
}

/// A daemon that cannot start again leaves nothing to simulate.
void SimulatedDaemon::restart_after_kill() {
  const std::optional<RuntimeCall> in_flight = run_->connection.in_flight();
  if (!run_->connection.killed_during().empty()) killed_during_.push_back(run_->connection.killed_during());
  end_run();
  // Uncommitted writes of the process are lost with it.
  store_->roll_back();
  Status begun = std::exchange(loses_database_, false) ? lose_database() : Status();
  if (begun) begun = begin_run();
  if (!begun) throw std::runtime_error("topoletd does not start: " + begun.error().message);
  run_->loop->run();
  if (in_flight) runtime_.answer(in_flight->method, in_flight->request, in_flight->caller);
}

/// Lets it do what there is to do now; if it is killed over that, the next run does.
void SimulatedDaemon::run_until_idle() {
  run_->loop->run();
  while (run_->connection.killed()) restart_after_kill();
}

void SimulatedDaemon::change_machine(engine::Engine::Machine machine) {
  machine_ = std::move(machine);
  run_->engine->change_machine(machine_);
  run_until_idle();
}

cri::RuntimeResponse SimulatedDaemon::call(const std::string& method, const std::string& request) {
  const std::uint64_t run = runs_;
  std::optional<cri::RuntimeResponse> answer = call_once(method, request);
  if (!answer && runs_ != run && kubelet_retries_) answer = call_once(method, request);
  return answer.value_or(cri::RuntimeResponse{Code::kUnavailable, "the call did not end", {}});
}

std::optional<cri::RuntimeResponse> SimulatedDaemon::call_once(const std::string& method, const std::string& request) {
  const std::uint64_t run = runs_;
  const auto call = std::make_shared<SimulatedCall>(method, request, run_->connection);
  run_->nri_front ? run_->nri_front->on_call(call) : run_->front->on_call(call);
  run_until_idle();
  const std::chrono::milliseconds timeout = time_.now() + kCallTimeout;
  // While the engine holds on to it, it waits for time to pass.
  while (!call->answer() && runs_ == run && call.use_count() > 1) {
    const auto timer = run_->loop->next_timer();
    if (!timer || *timer > timeout) break;
    advance(*timer - time_.now());
  }
  return call->answer();
}

void SimulatedDaemon::observe(const cri::ObservedMessage& observation) {
  run_->nri_front ? run_->nri_front->on_observed(observation) : run_->front->on_observed(observation);
  run_until_idle();
}

void SimulatedDaemon::read_ledger(const std::function<void(const engine::Ledger& ledger)>& read_ledger) {
  run_->engine->read_ledger(read_ledger);
  run_until_idle();
}

Result<engine::Engine::CapacityAnswer> SimulatedDaemon::set_capacity(engine::Engine::CapacityRequest request) {
  const auto answered = std::make_shared<Result<engine::Engine::CapacityAnswer>>(
      Error{Code::kUnavailable, "topoletd was killed before it answered"});
  run_->engine->set_capacity(std::move(request), [answered](const auto& answer) { *answered = answer; });
  run_until_idle();
  return *answered;
}

/// Lets time pass until there is one.
template <class Report, class Ask>
Result<Report> SimulatedDaemon::answer_of(Ask ask) {
  const std::uint64_t run = runs_;
  const auto answer = std::make_shared<std::optional<Result<Report>>>();
  ask([answer](const Result<Report>& report) { *answer = report; });
  run_until_idle();
  while (!*answer && runs_ == run) {
    const auto timer = run_->loop->next_timer();
    if (!timer) break;
    advance(*timer - time_.now());
  }
  if (*answer) return **answer;
  return Error{Code::kUnavailable, "topoletd was killed before it answered"};
}

Result<engine::Engine::HealReport> SimulatedDaemon::heal(bool is_dry) {
  return answer_of<engine::Engine::HealReport>(
      [this, is_dry](const engine::OnHealed& then) { run_->engine->heal(is_dry, then); });
}

Result<engine::ReleaseReport> SimulatedDaemon::release(bool cpusets) {
  return answer_of<engine::ReleaseReport>(
      [this, cpusets](const engine::OnReleased& then) { run_->engine->release(cpusets, then); });
}

void SimulatedDaemon::advance(std::chrono::milliseconds time) {
  const std::chrono::milliseconds end = time_.now() + time;
  run_->loop->advance(time);
  while (run_->connection.killed()) {
    restart_after_kill();
    run_->loop->advance(end - time_.now());
  }
}

void SimulatedDaemon::restart(bool loses_database, std::optional<engine::Engine::Machine> machine) {
  loses_database_ = loses_database;
  if (machine) machine_ = *std::move(machine);
  kill_.reset();
  run_->connection.kill();
  run_until_idle();
}

void SimulatedDaemon::kill_at(KillPoint kill) {
  kill_ = kill;
  kubelet_retries_ = kill.repeat;
}

std::map<std::string, plugin::LostVotes> SimulatedDaemon::lost_votes() const {
  std::map<std::string, plugin::LostVotes> all = lost_before_;
  add_lost_votes(*run_->policies, all);
  return all;
}

bool SimulatedDaemon::has_abandoned_calls() const {
  const auto has = [](const auto& policies) { return policies->has_abandoned_calls(); };
  return has(run_->policies) || std::any_of(left_policies_.begin(), left_policies_.end(), has);
}

void SimulatedDaemon::clear_recorded() {
  decisions_.rows.clear();
  killed_during_.clear();
}

}  // namespace topolet::simulate
