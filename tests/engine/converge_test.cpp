#include "tests/engine/converge_test.hpp"

#include <algorithm>

#include "core/engine/state/codec.hpp"

namespace topolet::engine {

void ConvergeTest::begin(const std::vector<Allocation>& allocations, const std::vector<Pod>& pods) {
  Ledger ledger = ledger_of(allocations, pods);
  std::vector<std::pair<std::int64_t, store::Columns>> rows;
  for (const auto& [key, allocation] : ledger.allocations()) rows.emplace_back(allocation.decision, encode(allocation));
  std::sort(rows.begin(), rows.end());
  for (const auto& [decision, columns] : rows) {
    store::DecidedRow row;
    row.event = "placed";
    EXPECT_EQ(*store_->add(row), decision);
    EXPECT_TRUE(store_->put_allocation(decision, columns).has_value());
  }
  const Clock clock = loop_.clock();
  Writer::Options options{.thread = Writer::Thread::kLoop};
  if (transaction_time_) options.transaction_time = [time = *transaction_time_] { return time; };
  committer_ = std::make_unique<Committer>(Committer::Deps{loop_, *store_, options, placer_.rules(), clock, *log_},
                                           std::move(ledger));
  cpusets_ = std::make_unique<CpusetWriter>(CpusetWriter::Deps{loop_, client_, {}, kernel_.kernel(), *log_, clock});
  exits_ = std::make_unique<Exits>(*committer_, *cpusets_);
  mover_ = std::make_unique<Mover>(
      Mover::Deps{loop_, *committer_, *cpusets_, *exits_, std::chrono::seconds(10), clock, *log_});
  rebalancer_ = std::make_unique<Rebalancer>(Rebalancer::Deps{loop_, *committer_, placer_, *mover_, clock, *log_});
  reconciler_ = std::make_unique<Reconciler>(Reconciler::Deps{loop_,
                                                              *committer_,
                                                              placer_,
                                                              *cpusets_,
                                                              *mover_,
                                                              *exits_,
                                                              *rebalancer_,
                                                              placed_handlers_,
                                                              store_regressed_,
                                                              std::chrono::minutes(4),
                                                              {},
                                                              clock,
                                                              *log_,
                                                              kubelet_cpus_,
                                                              why_unknown_});
  committer_->subscribe(*this);
}

ScriptedRuntime::Container ConvergeTest::container_of(const std::string& name, operations::ContainerState state) {
  const Allocation& allocation = *find(name);
  ScriptedRuntime::Container container;
  container.sandbox_id = allocation.workload.key.sandbox_id;
  container.name = name;
  container.attempt = allocation.workload.key.attempt;
  container.state = state;
  container.pid = state == operations::ContainerState::kRunning ? 100 + name.front() : 0;
  container.cpus = allocation.placement.cpus;
  if (allocation.is_exclusive()) container.whole_cpus = static_cast<std::int64_t>(allocation.placement.cpus.size());
  return container;
}

void ConvergeTest::start_converged(const std::string& name, operations::ContainerState state) {
  runtime_.put("c-" + name, container_of(name, state));
  mover_->open_queue("c-" + name, desired_cpuset_of(*find(name)));
  loop_.run();
  runtime_.take_calls();
  take_transitions();
}

void ConvergeTest::on_durable(const Transition& transition) {
  for (std::string& line : describe(transition)) transitions_.push_back(std::move(line));
}

}  // namespace topolet::engine
