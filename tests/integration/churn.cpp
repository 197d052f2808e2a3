#include "tests/integration/churn.hpp"

#include "tests/integration/node.hpp"

namespace topolet::integration {

Churn::Churn(WorkerContext& workplace, const std::vector<WorkerKind>& workers, std::uint32_t seed)
    : workplace_(workplace) {
  char name = 'a';
  for (const WorkerKind kind : workers) {
    workers_.push_back(std::make_unique<PodWorker>(std::string(1, name++), kind, workplace, seed++));
    threads_.emplace_back([worker = workers_.back().get()] { worker->work(); });
  }
}

Churn::~Churn() {
  workplace_.is_abandoned = true;
  end();
}

bool Churn::is_busy() const {
  return wait_until([this, before = workplace_.calls.load()] { return workplace_.calls > before; });
}

void Churn::end() {
  workplace_.is_closing = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Tally Churn::tally() const {
  Tally sum;
  for (const auto& worker : workers_) sum += worker->tally();
  return sum;
}

std::vector<std::string> Churn::failures() const {
  std::vector<std::string> all;
  for (const auto& worker : workers_) {
    all.insert(all.end(), worker->failures().begin(), worker->failures().end());
  }
  return all;
}

}  // namespace topolet::integration
