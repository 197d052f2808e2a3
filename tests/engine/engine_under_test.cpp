#include "tests/engine/engine_under_test.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "core/engine/engine.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/simulate/recording_store.hpp"
#include "tests/daemon/test_policy.hpp"
#include "tests/engine/preferences.hpp"
#include "tests/support/error_log.hpp"

namespace topolet::testing {
namespace {

constexpr std::chrono::seconds kPendingTimeout{20};

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

class FewNodesPolicy : public placement::Policy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size() && request.exclusive; ++i) {
      const auto nodes = static_cast<std::int32_t>(request.candidates[i].nodes.size());
      verdicts[i] = {placement::Verdict::Kind::kScore, 60 - 20 * nodes, "few nodes"};
    }
    return verdicts;
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& /*usable*/, std::size_t /*count*/) override {
    return placement::Pick();
  }

 private:
  std::string name_ = "few-nodes";
};

ObservedLedger seen(const engine::Ledger& ledger) {
  ObservedLedger seen{ledger.pool(), {}};
  for (const auto& [key, allocation] : ledger.allocations()) {
    seen.allocations.push_back({.container = fmt::format("{}/{}/{}", key.sandbox_id, key.name, key.attempt),
                                .container_id = allocation.container_id,
                                .key = key,
                                .phase = allocation.phase,
                                .is_kept = allocation.is_kept(),
                                .is_bound = allocation.is_bound(),
                                .exclusive = allocation.is_exclusive(),
                                .cpus = allocation.placement.cpus,
                                .withheld = allocation.effective_withheld()});
  }
  return seen;
}

void expect_own_container_left_out(const placement::PolicyRequest& request) {
  for (const placement::LedgerEntry& entry : request.ledger.entries) {
    if (entry.key == request.workload.key)
      throw std::logic_error(entry.name + " is in the ledger that it is placed with");
  }
}

engine::Engine::Machine machine_of(const std::shared_ptr<const topology::Topology>& topology) {
  return {topology, placement::make_candidates(*topology, topology->allowed), {topology->allowed, {}, {}}};
}

}  // namespace

EngineUnderTest::EngineUnderTest(Deps deps) : log_(make_error_log(errors_)) {
  const Clock clock = deps.time.clock();
  store_ = or_throw(
      store::Store::open({.directory = deps.state_directory, .boot_id = "boot", .now_ms = clock.wall().count()}));
  store_until_killed_ = std::make_unique<simulate::RecordingStore>(*store_, decisions_, [this] { return killed_; });
  engine::Engine::Machine machine = machine_of(deps.machine);
  placement::PlacementRules rules;
  rules.heal = placement::HealRule::kAll;
  std::vector<placement::Vote> votes;
  if (deps.makes_room) votes.push_back({.policy = std::make_shared<FewNodesPolicy>()});
  if (deps.pods_prefer_nodes) {
    votes.push_back({.policy = std::make_shared<NodePolicy>([](const placement::PolicyRequest& request) {
                       return preferred_node(request.workload.key.pod_uid);
                     })});
  }
  runtime_client_ = std::make_unique<cri::RuntimeClient>(deps.runtime, operations::DemandRules());
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{.runtime_handlers = {.only = {{"default"}}},
                              .doubt_timeout = kPendingTimeout,
                              .writer_options = {.thread = engine::WriterThread::kLoop,
                                                 .transaction_time = std::move(deps.transaction_time)}},
      engine::Engine::Deps{.runtime = *runtime_client_,
                           .store = *store_until_killed_,
                           .cpus = std::move(machine.cpus),
                           .placer = {.topology = deps.machine,
                                      .candidates = std::move(machine.candidates),
                                      .rules = rules,
                                      .decide =
                                          [votes](const std::shared_ptr<const placement::PolicyRequest>& request,
                                                  const placement::PlacementRules& with) {
                                            expect_own_container_left_out(*request);
                                            return decide(*request, with, votes);
                                          },
                                      .load = std::move(deps.load)},
                           .kernel = std::move(deps.kernel),
                           .clock = clock,
                           .log = *log_,
                           .besteffort_share = std::move(deps.share),
                           .loop = std::make_unique<VirtualLoop>(deps.time)});
  front_ = std::make_unique<cri::CriFront>(cri::CriFront::Deps{*engine_, operations::DemandRules(), *log_});
  const Status started = engine_->start();
  if (!started) throw std::runtime_error(started.error().message);
}

EngineUnderTest::~EngineUnderTest() { stop(); }

void EngineUnderTest::stop() {
  killed_ = true;
  engine_->stop();
}

void EngineUnderTest::change_machine(const std::shared_ptr<const topology::Topology>& machine) {
  engine_->change_machine(machine_of(machine));
}

void EngineUnderTest::release() {
  engine_->release(false, [](const auto& /*released*/) {});
}

void EngineUnderTest::verify_cpusets() { engine_->verify_cpusets(); }

std::optional<std::string> EngineUnderTest::take_own_fault(bool overlaps_too) {
  const std::vector<std::string> errors = std::exchange(errors_, {});
  const std::vector<store::DecidedRow> decisions = std::exchange(decisions_.rows, {});
  for (const std::string& error : errors) {
    if (error.rfind("fault in topoletd", 0) == 0) return error;
  }
  for (const store::DecidedRow& row : decisions) {
    // Nobody else has a hand in these runs.
    if (row.event == "overruled") return fmt::format("audited: {}/{}: {}", row.pod_name, row.container, row.reason);
    if (overlaps_too && row.event == "overlap")
      return fmt::format("audited: {}/{}: {}", row.pod_name, row.container, row.reason);
  }
  return std::nullopt;
}

void EngineUnderTest::on_call(const std::shared_ptr<cri::Call>& call) { front_->on_call(call); }

void EngineUnderTest::on_observed(const cri::ObservedMessage& observation) { front_->on_observed(observation); }

void EngineUnderTest::on_connected() { front_->on_connected(); }

void EngineUnderTest::read_ledger(std::function<void(const ObservedLedger&)> read_ledger) {
  engine_->read_ledger(
      [read_ledger = std::move(read_ledger)](const engine::Ledger& ledger) { read_ledger(seen(ledger)); });
}

}  // namespace topolet::testing
