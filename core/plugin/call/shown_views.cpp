#include "core/plugin/call/shown_views.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::plugin {

ViewCache::ViewCache(std::shared_ptr<Log> log, Clock clock) : log_(std::move(log)), clock_(std::move(clock)) {}

std::shared_ptr<const AbiTopology> ViewCache::topology(const std::shared_ptr<const topology::Topology>& topology) {
  MutexLock lock(mutex_);
  if (topology_ == nullptr || topology_->topology() != topology) {
    topology_ = std::make_shared<const AbiTopology>(topology);
  }
  return topology_;
}

std::shared_ptr<AbiLedger> ViewCache::take_ledger(const std::string& of) {
  MutexLock lock(mutex_);
  const auto found = ledgers_.find(of);
  return found == ledgers_.end() ? nullptr : std::exchange(found->second, nullptr);
}

void ViewCache::give_back(const std::string& of, std::shared_ptr<AbiLedger> ledger) {
  MutexLock lock(mutex_);
  if (of.empty() && lends_apart_) {
    old_ledgers_.push_back(std::move(ledger));
  } else {
    ledgers_[of] = std::move(ledger);
  }
}

LentMemory ViewCache::memory(const std::string& of) {
  MutexLock lock(mutex_);
  std::shared_ptr<LentPool>& pool = pools_[of];
  if (pool == nullptr) pool = std::make_shared<LentPool>();
  return {.guard = LentGuard::kCompared, .pool = pool};
}

void ViewCache::lend_apart(const std::string& why) {
  if (lends_apart_.exchange(true)) return;
  log_->error(
      "{}; from now on every plugin is lent memory of its own, so that the next time it is known which plugin it is",
      why);
}

void ViewCache::check_topology() {
  std::shared_ptr<const AbiTopology> seen;
  {
    MutexLock lock(mutex_);
    seen = topology_;
  }
  if (seen == nullptr || seen->check() == LentState::kIntact) return;
  {
    MutexLock lock(mutex_);
    if (topology_ == seen) topology_ = nullptr;
    old_topologies_.push_back(std::move(seen));
  }
  lend_apart(
      "the topology that plugins are lent was changed or unmapped by one that does not care for its pages' protection");
}

void ViewCache::check_topology_now_and_then() {
  constexpr std::chrono::seconds kInterval{10};
  const auto now = clock_.steady();
  {
    MutexLock lock(mutex_);
    if (topology_checked_at_ && now - *topology_checked_at_ < kInterval) return;
    topology_checked_at_ = now;
  }
  check_topology();
}

const AbiRequest& ShownViews::request(const placement::PolicyRequest& request, const std::string& plugin) {
  Shown& shown = shown_to(plugin);
  if (shown.of == &request && shown.view->is_intact()) return *shown.view;
  const std::shared_ptr<const AbiTopology> topology = cache_->topology(request.topology);
  LentMemory memory = cache_->memory(name_of_memory(plugin));
  shown.of = nullptr;
  shown.view.reset();
  std::optional<placement::LedgerSnapshot> without_barred;
  if (request.exclusive && !request.ledger.barred.empty()) {
    // A container that wants CPUs of its own can have none on which others stay: to plugins these are not in the pool.
    without_barred = request.ledger;
    without_barred->pool -= without_barred->barred;
  }
  shown.ledger = updated(std::exchange(shown.ledger, nullptr), without_barred ? *without_barred : request.ledger,
                         *topology, memory);
  shown.view = std::make_unique<AbiRequest>(request, topology, shown.ledger, memory);
  if (!shown.view->is_intact()) {
    // Some spare memory was unmapped or protected.
    memory.pool = nullptr;
    shown.view.reset();
    shown.view = std::make_unique<AbiRequest>(request, topology, shown.ledger, memory);
  }
  shown.of = &request;
  return *shown.view;
}

const AbiLedger& ShownViews::ledger(const placement::LedgerSnapshot& snapshot, const AbiTopology& topology,
                                    const std::string& plugin) {
  Shown& shown = shown_to(plugin);
  shown.of = nullptr;
  shown.view.reset();
  shown.ledger =
      updated(std::exchange(shown.ledger, nullptr), snapshot, topology, cache_->memory(name_of_memory(plugin)));
  return *shown.ledger;
}

ShownViews::Shown& ShownViews::shown_to(const std::string& plugin) {
  check_given_back();
  return cache_->lends_apart() ? apart_[plugin] : common_;
}

/// Whoever is called first is not to blame for what was written since the last call that it was lent for.
void ShownViews::check_given_back() {
  if (std::exchange(has_checked_, true) || cache_->lends_apart()) return;
  common_.ledger = cache_->take_ledger("");
  if (common_.ledger == nullptr || common_.ledger->check() == LentState::kIntact) return;
  common_.ledger.reset();
  cache_->lend_apart(
      "the ledger that plugins were lent was written to when they had returned, by a plugin that keeps addresses or "
      "has threads; that is undone");
}

std::shared_ptr<AbiLedger> ShownViews::updated(std::shared_ptr<AbiLedger> ledger,
                                               const placement::LedgerSnapshot& snapshot, const AbiTopology& topology,
                                               const LentMemory& memory) const {
  if (ledger != nullptr && ledger->is_of(topology) && ledger->is_intact()) {
    ledger->update(snapshot);
  } else {
    ledger.reset();
    ledger = std::make_shared<AbiLedger>(snapshot, topology, memory);
  }
  if (!ledger->is_intact()) {
    // Its memory, or some that was spare, was unmapped or protected.
    ledger.reset();
    ledger = std::make_shared<AbiLedger>(snapshot, topology, LentMemory{});
  }
  return ledger;
}

bool ShownViews::were_written_by(const std::string& plugin) {
  Shown& shown = apart_[plugin];
  if (shown.ledger == nullptr) shown.ledger = cache_->take_ledger(plugin);
  const bool view = shown.view != nullptr && shown.view->block().check() != LentState::kIntact;
  const bool ledger = shown.ledger != nullptr && shown.ledger->check() != LentState::kIntact;
  if (view || ledger) shown = {};
  return view || ledger;
}

void ShownViews::forget() {
  common_.of = nullptr;
  for (auto& [plugin, shown] : apart_) shown.of = nullptr;
}

void ShownViews::give_back() {
  const auto give = [this](const std::string& of, Shown& shown) {
    shown.of = nullptr;
    shown.view.reset();
    if (shown.ledger != nullptr && shown.ledger->is_intact()) cache_->give_back(of, std::move(shown.ledger));
    shown.ledger.reset();
  };
  give("", common_);
  for (auto& [plugin, shown] : apart_) give(plugin, shown);
}

void ShownViews::retire() {
  const auto retire_one = [](Shown& shown) {
    shown.of = nullptr;
    if (shown.view != nullptr) shown.view->block().retire();
    shown.view.reset();
    if (shown.ledger != nullptr) shown.ledger->retire();
    shown.ledger.reset();
  };
  retire_one(common_);
  for (auto& [plugin, shown] : apart_) retire_one(shown);
}

}  // namespace topolet::plugin
