#include "core/plugin/call/shown_views.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/base/log.hpp"

namespace topolet::plugin {

ViewCache::ViewCache(std::shared_ptr<Log> log, Clock clock) : log_(std::move(log)), clock_(std::move(clock)) {}

std::shared_ptr<const AbiTopology> ViewCache::topology(const std::shared_ptr<const topology::Topology>& topology,
                                                       const KnownValues& known) {
  MutexLock lock(mutex_);
  if (!topologies_.empty() && topologies_.begin()->second->topology() != topology) topologies_.clear();
  const auto shown = [&](const KnownValues& values) TOPOLET_REQUIRES(mutex_) {
    std::shared_ptr<const AbiTopology>& view = topologies_[values.minor()];
    if (view == nullptr) view = std::make_shared<const AbiTopology>(topology, values);
    return view;
  };
  std::shared_ptr<const AbiTopology> common = shown(known.of_host());
  return common->newest_minor() <= known.minor() ? common : shown(known);
}

std::shared_ptr<AbiLedger> ViewCache::take_ledger(const LentTo& whom) {
  MutexLock lock(mutex_);
  const auto found = ledgers_.find(whom);
  return found == ledgers_.end() ? nullptr : std::exchange(found->second, nullptr);
}

void ViewCache::give_back(const LentTo& whom, std::shared_ptr<AbiLedger> ledger) {
  MutexLock lock(mutex_);
  if (whom.plugin.empty() && lends_apart_) {
    old_ledgers_.push_back(std::move(ledger));
  } else {
    ledgers_[whom] = std::move(ledger);
  }
}

LentMemory ViewCache::memory(const LentTo& whom) {
  MutexLock lock(mutex_);
  std::shared_ptr<LentPool>& pool = pools_[whom];
  if (pool == nullptr) pool = std::make_shared<LentPool>();
  return {.guard = LentGuard::kFound, .pool = pool};
}

void ViewCache::lend_apart(const std::string& why) {
  if (lends_apart_.exchange(true)) return;
  log_->error(
      "{}; from now on every plugin is lent memory of its own, so that the next time it is known which plugin it is",
      why);
}

void ViewCache::check_topology() {
  std::map<std::uint32_t, std::shared_ptr<const AbiTopology>> seen;
  {
    MutexLock lock(mutex_);
    seen = topologies_;
  }
  const auto is_intact = [](const auto& view) { return view.second->check() == LentState::kIntact; };
  if (std::all_of(seen.begin(), seen.end(), is_intact)) return;
  {
    MutexLock lock(mutex_);
    for (auto& [minor, view] : seen) {
      if (const auto shown = topologies_.find(minor); shown != topologies_.end() && shown->second == view)
        topologies_.erase(shown);
      old_topologies_.push_back(std::move(view));
    }
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

template <class Make>
const auto& ShownViews::suitable(const std::string& plugin, const KnownValues& known, Make make) {
  const KnownValues of_host = known.of_host();
  if (const LentTo all{"", of_host.minor()}; can_be_shared(all)) {
    const auto& view = make(all, of_host);
    if (view.newest_minor() <= known.minor()) return view;
  }
  if (const LentTo its_minor{"", known.minor()}; can_be_shared(its_minor)) return make(its_minor, known);
  return make(LentTo{plugin, known.minor()}, known);
}

const AbiRequest& ShownViews::request(const placement::PolicyRequest& request, const std::string& plugin,
                                      const KnownValues& known) {
  return suitable(plugin, known, [&](const LentTo& whom, const KnownValues& values) -> const AbiRequest& {
    return request_for(whom, values, request);
  });
}

const AbiLedger& ShownViews::ledger(const placement::LedgerSnapshot& snapshot, const AbiTopology& topology,
                                    const std::string& plugin, const KnownValues& known) {
  return suitable(plugin, known, [&](const LentTo& whom, const KnownValues& values) -> const AbiLedger& {
    return ledger_for(whom, values, snapshot, topology);
  });
}

const AbiRequest& ShownViews::request_for(const LentTo& whom, const KnownValues& known,
                                          const placement::PolicyRequest& request) {
  Shown& shown = shown_[whom];
  if (shown.of == &request && shown.view->is_intact()) return *shown.view;
  const std::shared_ptr<const AbiTopology> topology = cache_->topology(request.topology, known);
  LentMemory memory = cache_->memory(whom);
  shown.of = nullptr;
  shown.view.reset();
  std::optional<placement::LedgerSnapshot> without_barred;
  if (request.exclusive && !request.ledger.barred.empty()) {
    // A container that wants CPUs of its own can have none on which others stay: to plugins these are not in the pool.
    without_barred = request.ledger;
    without_barred->pool -= without_barred->barred;
  }
  shown.ledger = updated(std::exchange(shown.ledger, nullptr), without_barred ? *without_barred : request.ledger,
                         *topology, memory, known);
  shown.view = std::make_unique<AbiRequest>(request, topology, shown.ledger, memory, known);
  if (!shown.view->is_intact()) {
    // Some spare memory was unmapped or protected.
    memory.pool = nullptr;
    shown.view.reset();
    shown.view = std::make_unique<AbiRequest>(request, topology, shown.ledger, memory, known);
  }
  shown.of = &request;
  return *shown.view;
}

const AbiLedger& ShownViews::ledger_for(const LentTo& whom, const KnownValues& known,
                                        const placement::LedgerSnapshot& snapshot, const AbiTopology& topology) {
  Shown& shown = shown_[whom];
  shown.of = nullptr;
  shown.view.reset();
  shown.ledger = updated(std::exchange(shown.ledger, nullptr), snapshot, topology, cache_->memory(whom), known);
  return *shown.ledger;
}

/// Whoever is called first is not to blame for what was written since the last call that it was lent for.
bool ShownViews::can_be_shared(const LentTo& whom) {
  if (cache_->lends_apart()) return false;
  const auto [shown, is_first] = shown_.try_emplace(whom);
  if (!is_first) return true;
  std::shared_ptr<AbiLedger>& ledger = shown->second.ledger;
  ledger = cache_->take_ledger(whom);
  if (ledger == nullptr || ledger->check_all() == LentState::kIntact) return true;
  ledger.reset();
  cache_->lend_apart(
      "the ledger that plugins were lent was written to when they had returned, by a plugin that keeps addresses or "
      "has threads; that is undone");
  return false;
}

std::shared_ptr<AbiLedger> ShownViews::updated(std::shared_ptr<AbiLedger> ledger,
                                               const placement::LedgerSnapshot& snapshot, const AbiTopology& topology,
                                               const LentMemory& memory, const KnownValues& known) const {
  if (ledger != nullptr && ledger->is_of(topology) && ledger->is_intact()) {
    ledger->update(snapshot);
  } else {
    ledger.reset();
    ledger = std::make_shared<AbiLedger>(snapshot, topology, memory, known);
  }
  if (!ledger->is_intact()) {
    // Its memory, or some that was spare, was unmapped or protected.
    ledger.reset();
    ledger = std::make_shared<AbiLedger>(snapshot, topology, LentMemory{}, known);
  }
  return ledger;
}

bool ShownViews::were_written_by(const std::string& plugin, const KnownValues& known) {
  const LentTo whom{plugin, known.minor()};
  Shown& shown = shown_[whom];
  if (shown.ledger == nullptr) {
    shown.ledger = cache_->take_ledger(whom);
    if (shown.ledger != nullptr) static_cast<void>(shown.ledger->check_all());
  }
  const bool view = shown.view != nullptr && shown.view->block().check() != LentState::kIntact;
  const bool ledger = shown.ledger != nullptr && shown.ledger->check() != LentState::kIntact;
  if (view || ledger) shown = {};
  return view || ledger;
}

void ShownViews::forget() {
  for (auto& [whom, shown] : shown_) shown.of = nullptr;
}

void ShownViews::give_back() {
  for (auto& [whom, shown] : shown_) {
    shown.of = nullptr;
    shown.view.reset();
    if (shown.ledger != nullptr && shown.ledger->is_intact()) cache_->give_back(whom, std::move(shown.ledger));
    shown.ledger.reset();
  }
}

void ShownViews::retire() {
  for (auto& [whom, shown] : shown_) {
    shown.of = nullptr;
    if (shown.view != nullptr) shown.view->block().retire();
    shown.view.reset();
    if (shown.ledger != nullptr) shown.ledger->retire();
    shown.ledger.reset();
  }
}

}  // namespace topolet::plugin
