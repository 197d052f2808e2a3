#include "tests/engine/engine_under_test.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "core/engine/engine.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "store/store.hpp"
#include "tests/daemon/test_policy.hpp"
#include "tests/engine/preferences.hpp"

namespace topolet::testing {
namespace {

constexpr std::chrono::seconds kPendingTimeout{20};

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

SeenAllocation::Phase phase_of(const engine::Allocation& allocation) {
  if (allocation.is_bound()) return SeenAllocation::Phase::kBound;
  return allocation.phase == engine::Phase::kCrashed ? SeenAllocation::Phase::kFailed
                                                     : SeenAllocation::Phase::kUnanswered;
}

SeenLedger seen(const engine::Ledger& ledger) {
  SeenLedger seen{ledger.pool(), {}};
  for (const auto& [key, allocation] : ledger.allocations()) {
    seen.allocations.push_back({.container = fmt::format("{}/{}/{}", key.sandbox_id, key.name, key.attempt),
                                .container_id = allocation.container_id,
                                .phase = phase_of(allocation),
                                .exclusive = allocation.is_exclusive(),
                                .cpus = allocation.placement.cpus,
                                .withheld = allocation.withheld_now()});
  }
  return seen;
}

}  // namespace

EngineUnderTest::EngineUnderTest(Deps deps) : log_(make_silent_log()) {
  const Clock clock = deps.time.clock();
  store_ =
      or_throw(Store::open({.directory = deps.state_directory, .boot_id = "boot", .now_ms = clock.wall().count()}));
  const std::shared_ptr<const Topology>& machine = deps.machine;
  const DecideRules rules;
  std::vector<Voter> voters;
  if (deps.pods_prefer_nodes) {
    voters.push_back({.policy = std::make_shared<NodePolicy>(
                          [](const PolicyRequest& request) { return preferred_node(request.workload.key.pod_uid); })});
  }
  engine_ = std::make_unique<engine::Engine>(
      engine::Engine::Options{
          .handlers = {""}, .pending_timeout = kPendingTimeout, .writing = {.thread = engine::Writer::Thread::kLoop}},
      engine::Engine::Parts{
          .runtime = deps.runtime,
          .store = *store_,
          .cpus = {machine->allowed, {}, {}},
          .placing = {.topology = machine,
                      .candidates = make_candidates(*machine, machine->allowed),
                      .rules = rules,
                      .decide = [voters](const std::shared_ptr<const PolicyRequest>& request,
                                         const DecideRules& with) { return decide(*request, with, voters); }},
          .kernel = std::move(deps.kernel),
          .clock = clock,
          .log = *log_,
          .loop = std::make_unique<VirtualLoop>(deps.time)});
  const Status started = engine_->start();
  if (!started) throw std::runtime_error(started.error().message);
}

EngineUnderTest::~EngineUnderTest() { stop(); }

void EngineUnderTest::stop() { engine_->stop(); }

void EngineUnderTest::on_call(std::shared_ptr<Call> call) { engine_->on_call(std::move(call)); }

void EngineUnderTest::on_observed(Observation observation) { engine_->on_observed(std::move(observation)); }

void EngineUnderTest::on_connected() { engine_->on_connected(); }

void EngineUnderTest::look(std::function<void(const SeenLedger&)> look) {
  engine_->look([look = std::move(look)](const engine::Ledger& ledger) { look(seen(ledger)); });
}

}  // namespace topolet::testing
