#include "tests/engine/kill_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "core/topology/discover.hpp"
#include "tests/engine/consistency_check.hpp"

namespace topolet::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kEventsBetweenComparisons = 60;
constexpr std::size_t kDenseEventsBetweenComparisons = 400;
constexpr milliseconds kLongestPause{700};
constexpr milliseconds kLongestDensePause{3};
/// Many containers come and go beside others that share.
constexpr RandomKubelet::Habits kDenseHabits = {.most_pods = 12, .resizes_percent = 8, .stops_percent = 40};
constexpr milliseconds kLongestDowntime{1500};
/// After it nothing is in doubt any more, and every retry of topolet's has had its time.
constexpr seconds kQuiet{60};
/// Longer than CPUs of a container that failed are kept.
constexpr minutes kUntilAllIsFree{6};
constexpr seconds kKubeletPatience{120};

constexpr std::int32_t kContainerStopped = 2;  // CRI: CONTAINER_STOPPED_EVENT

constexpr VerifyingRuntime::Faults kFaults = {.refused = 10,
                                              .request_lost = 15,
                                              .answer_lost = 25,
                                              .answered_early = 25,
                                              .hung = 3,
                                              .start_failed = 20,
                                              .slowest = milliseconds(1000),
                                              .slowest_start = seconds(6)};

bool is_dense(const KillRun::Options& options) { return options.pace == KillRun::Pace::kDense; }

/// Most answers come within the time that a slow store takes.
constexpr VerifyingRuntime::Faults kDenseFaults = {.refused = 3,
                                                   .request_lost = 3,
                                                   .answer_lost = 6,
                                                   .answered_early = 6,
                                                   .hung = 1,
                                                   .start_failed = 10,
                                                   .slowest = milliseconds(3),
                                                   .slowest_start = milliseconds(6)};

VerifyingRuntime::Faults faults_for(const KillRun::Options& options) {
  if (!is_dense(options)) return kFaults;
  static const std::vector<milliseconds> kSlowestUpdates = {milliseconds(0), milliseconds(2), milliseconds(15),
                                                            milliseconds(60)};
  VerifyingRuntime::Faults faults = kDenseFaults;
  faults.slowest_update = kSlowestUpdates[options.seed / 2 % kSlowestUpdates.size()];
  return faults;
}

std::string machine_for(const KillRun::Options& options) {
  const bool has_threads = options.seed % 2 == 1;
  const char* const synthetic = is_dense(options)
                                    ? has_threads ? "pack:1 numa:2 core:4 pu:2" : "pack:1 numa:1 core:12 pu:1"
                                : has_threads ? "pack:1 numa:2 core:2 pu:2"
                                              : "pack:1 numa:2 core:4 pu:1";
  return synthetic;
}

}  // namespace

KillRun::KillRun(Options options)
    : options_(options),
      dice_(options.seed),
      trace_(time_, {.to_stderr = options.trace_to_stderr}),
      synthetic_(machine_for(options)),
      whole_machine_(*topology::discover({.synthetic = synthetic_})),
      machine_(whole_machine_),
      kernel_(directory_.path() / "host", machine_->allowed),
      faults_(faults_for(options)),
      pods_prefer_nodes_(options.seed / 2 % 2 == 1) {
  runtime_ = std::make_unique<VerifyingRuntime>(
      VerifyingRuntime::Options{.create_again_gives_same_id = options.seed % 3 == 0, .faults = faults_},
      VerifyingRuntime::Deps{time_, dice_, trace_, kernel_});
  runtime_->on_exited = [this](const std::string& container_id) {
    if (dice_.permille(400)) return;
    lens::ContainerEvent event;
    event.set_container_id(container_id);
    event.set_type(kContainerStopped);
    observe(milliseconds(300), "GetContainerEvents", event.SerializeAsString());
  };
  kubelet_ = std::make_unique<RandomKubelet>(
      RandomKubelet::Deps{dice_, *runtime_,
                          [this](std::string method, std::string request, auto answered) {
                            send(std::move(method), std::move(request), std::move(answered));
                          },
                          is_dense(options_) ? kDenseHabits : RandomKubelet::Habits()});
}

KillRun::~KillRun() {
  runtime_->lose_callers();
  engine_.reset();
}

std::optional<std::string> KillRun::run() {
  start_daemon();
  while (events_ < options_.events && !failed()) {
    const bool dense = is_dense(options_);
    const std::size_t until = events_ + (dense ? kDenseEventsBetweenComparisons : kEventsBetweenComparisons);
    while (events_ < until && !failed()) {
      act();
      advance(dice_.up_to(dense ? kLongestDensePause : kLongestPause));
    }
    run_until_settled([this] { return kubelet_->finish_resizes(); });
    compare();
  }
  run_until_settled([this] { return kubelet_->end_pods(); });
  check_nothing_is_left();
  // A harmless fault comes last, so that it hides nothing.
  if (!failed()) fault_ = minor_fault_ ? minor_fault_ : runtime_->overtaken();
  if (!failed()) return std::nullopt;
  return fmt::format("after {} events and {} kills: {}\nThe last that happened, with seconds:\n{}", events_, kills_,
                     fault_ ? *fault_ : *runtime_->violation(), trace_.last_lines());
}

void KillRun::act() {
  if (options_.has_load && dice_.permille(150)) change_load();
  const bool acted = options_.hotplug && dice_.permille(10) ? change_cpus()
                     : dice_.permille(70)                   ? exit_some()
                                                            : kubelet_->act();
  if (acted) ++events_;
  if (dice_.permille(100)) {
    observe(milliseconds(200), "ListContainers", runtime_->list_containers());
  }
  if (dice_.permille(10) && engine_) engine_->on_connected();
}

bool KillRun::exit_some() {
  std::vector<std::string> running;
  for (const auto& [id, container] : runtime_->containers()) {
    if (container.state == RunState::kRunning) running.push_back(id);
  }
  if (running.empty()) return false;
  runtime_->exit(dice_.one_of(running), dice_.permille(500) ? 0 : 1);
  return true;
}

/// Of some containers and nodes something is measured, of others not. Now and then all is taken back.
void KillRun::change_load() {
  load::Load load;
  for (const auto& [id, container] : runtime_->containers()) {
    if (container.state != RunState::kRunning || dice_.permille(200)) continue;
    load::ContainerLoad& measured = load.containers[id];
    measured.cpu_milli = static_cast<std::int64_t>(dice_.below(3000));
    measured.psi_some_permille = static_cast<std::uint32_t>(dice_.below(1000));
    measured.age = dice_.up_to(milliseconds(5500));
  }
  for (const topology::Node& node : machine_->nodes) {
    if (dice_.permille(300)) continue;
    const auto all = static_cast<std::size_t>(1000 * node.cpus.size());
    load.nodes[node.os_index].effective_milli = static_cast<std::int64_t>(dice_.below(all + 1));
  }
  const bool is_measured = dice_.permille(900);
  trace_.add(is_measured ? "the load changes" : "nothing is measured any more");
  load_ = is_measured ? std::make_shared<const load::Load>(std::move(load)) : nullptr;
  if (engine_ && dice_.permille(20)) {
    trace_.add("released");
    engine_->release();
  }
}

/// Changes the online CPUs. At least half of all CPUs stay online.
bool KillRun::change_cpus() {
  const CpuSet& all = whole_machine_->allowed;
  CpuSet offline = all - machine_->allowed;
  const std::vector<std::uint32_t> cpus(all.begin(), all.end());
  const std::uint32_t cpu = dice_.one_of(cpus);
  if (offline.contains(cpu)) {
    offline = dice_.permille(500) ? CpuSet() : offline - CpuSet{cpu};
  } else if (2 * (offline.size() + 1) <= all.size()) {
    offline.insert(cpu);
  }
  set_offline(offline);
  return true;
}

void KillRun::set_offline(const CpuSet& offline) {
  if (whole_machine_->allowed - offline == machine_->allowed) return;
  machine_ = *topology::discover({.synthetic = synthetic_, .offline = offline});
  runtime_->set_online(machine_->allowed);
  const auto notice = [this, life = kills_] {
    if (engine_ && kills_ == life) engine_->change_machine(machine_);
  };
  time_.after(dice_.up_to(milliseconds(20)), notice);
}

void KillRun::send(std::string method, std::string request, RandomKubelet::Answered answered) {
  if (!engine_) {
    return time_.after(milliseconds(50), [answered = std::move(answered)] {
      answered({Code::kUnavailable, "nobody listens", {}});
    });
  }
  const milliseconds patience = faults_off_ || dice_.permille(700) ? kKubeletPatience : dice_.up_to(seconds(6));
  engine_->on_call(KubeletCall::make(std::move(method), std::move(request), patience, *life_, std::move(answered)));
}

/// Whoever is alive when it arrives sees it; an event stream does not survive the daemon.
void KillRun::observe(milliseconds slowest, const std::string& method, std::string response) {
  const std::string path = "/runtime.v1.RuntimeService/" + method;
  time_.after(dice_.up_to(slowest), [this, path, response = std::move(response), life = kills_] {
    if (engine_ && kills_ == life) engine_->on_observed({path, {response}});
  });
}

/// Returns the time of the writer's next transaction: mostly that of a disk which has something else to do, sometimes
/// that of a database which is locked, and seldom longer than those who wait for it do. On a slow store that is often,
/// so that the daemon may be killed when changes that it acted on were never written.
KillRun::Milliseconds KillRun::transaction_time() {
  if (faults_off_) return {};
  const std::size_t kind = dice_.below(100);
  if (kind < (options_.slow_store ? 40U : 2U)) return dice_.up_to(milliseconds(300));
  return dice_.up_to(kind < 15 ? milliseconds(45) : milliseconds(6));
}

void KillRun::start_daemon() {
  trace_.add("the daemon starts");
  auto wire = std::make_shared<Wire>(dice_);
  if (faults_off_ || !options_.kills) wire->set_reliable();
  life_.emplace(DaemonLife{time_, trace_, *runtime_, std::move(wire)});
  daemon_runtime_ = std::make_unique<DaemonRuntime>(*life_);
  EngineUnderTest::Deps deps{.state_directory = directory_.path() / "state",
                             .machine = machine_,
                             .runtime = *daemon_runtime_,
                             .time = time_,
                             .kernel = kernel_.kernel(),
                             .makes_room = options_.makes_room,
                             .pods_prefer_nodes = pods_prefer_nodes_};
  if (options_.has_load) {
    deps.load = [this] { return load_; };
    deps.share = [] { return placement::BestEffortShare{.cpus = 65, .pressure = 25, .memory = 50}; };
  }
  if (is_dense(options_)) deps.transaction_time = [this] { return transaction_time(); };
  engine_ = std::make_unique<EngineUnderTest>(std::move(deps));
}

void KillRun::note_own_fault() {
  // The kernel lets a container whose CPUs have all gone run beside others until it is repaired.
  if (!fault_ && engine_) fault_ = engine_->take_own_fault(!options_.hotplug);
}

void KillRun::kill() {
  note_own_fault();
  trace_.add("the daemon is killed");
  ++events_;
  ++kills_;
  life_->wire->cut();
  engine_->stop();
  runtime_->lose_callers();
  engine_.reset();
  life_.reset();
  time_.after(dice_.up_to(kLongestDowntime), [this] { start_daemon(); });
}

bool KillRun::should_be_killed() {
  if (!engine_) return false;
  if (life_->wire->is_cut()) return true;
  if (faults_off_ || !options_.kills) return false;
  const auto& containers = runtime_->containers();
  const bool matters = std::any_of(containers.begin(), containers.end(), [this](const auto& entry) {
    return entry.second.starting || entry.second.updates_until > time_.now();
  });
  return dice_.permille(matters ? 8 : 2);
}

void KillRun::advance(milliseconds time) {
  const milliseconds end = time_.now() + time;
  while (time_.step(end)) {
    note_own_fault();
    if (should_be_killed()) kill();
    if (failed()) return;
  }
}

void KillRun::run_until_settled(const std::function<bool()>& unfinished) {
  faults_off_ = true;
  runtime_->set_faults({});
  if (life_) life_->wire->set_reliable();
  set_offline({});
  load_ = nullptr;
  constexpr int kMostRounds = 1000;
  for (int round = 0; !failed() && (kubelet_->waits_for_answers() || unfinished()); ++round) {
    if (round == kMostRounds) fault_ = "the kubelet is never done, though nothing fails any more";
    advance(seconds(1));
  }
  if (!failed()) advance(kQuiet);
  runtime_->set_faults(faults_);
}

void KillRun::read_ledger_now(std::function<void(const ObservedLedger&)> see) {
  const auto has_looked = std::make_shared<bool>(false);
  engine_->read_ledger([has_looked, see = std::move(see)](const ObservedLedger& ledger) {
    *has_looked = true;
    see(ledger);
  });
  advance(milliseconds(1));
  if (!*has_looked && !failed()) fault_ = "the engine does not let anybody look at its ledger";
}

void KillRun::compare() {
  note_own_fault();
  if (failed()) return;
  read_ledger_now([this](const ObservedLedger& ledger) {
    // Where many share, it may be too crowded there where a container would rather be. And who has come back, and had
    // to leave once more, is not back again for ten minutes; with load that happens.
    const bool has_room = !is_dense(options_) && !options_.has_load;
    const auto difference = find_inconsistency(ledger, *runtime_,
                                               {.machine = *machine_,
                                                .pods_prefer_nodes = pods_prefer_nodes_ && has_room,
                                                .cpus_were_gone = options_.hotplug});
    if (difference) fault_ = "at a quiet moment: " + *difference;
    const auto narrower = find_unexpected_narrowing(ledger, *runtime_);
    if (narrower && !minor_fault_) minor_fault_ = "at a quiet moment: " + *narrower;
  });
  faults_off_ = false;
  life_->wire->set_reliable(!options_.kills);
}

void KillRun::check_nothing_is_left() {
  if (failed()) return;
  advance(kUntilAllIsFree);
  read_ledger_now([this](const ObservedLedger& ledger) {
    if (ledger.allocations.empty() && ledger.pool == machine_->allowed) return;
    const std::string first = ledger.allocations.empty() ? "nobody" : ledger.allocations.front().container;
    fault_ = fmt::format("all pods have ended, and the pool is {}; {} allocations are left, the first of {}",
                         ledger.pool.to_string(), ledger.allocations.size(), first);
  });
}

}  // namespace topolet::testing
