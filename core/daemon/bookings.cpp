#include "core/daemon/bookings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace topolet {
namespace {

/// Denials remembered to count repeats; beyond this the count starts anew.
constexpr std::size_t kRememberedDenials = 4096;
/// The same for containers that are over and had CPUs of their own.
constexpr std::size_t kRememberedPlacements = 4096;

Status to_status(const Result<std::int64_t>& added) { return added ? Status() : Status(added.error()); }

Qos qos_from(const std::string& name) {
  if (name == to_string(Qos::kGuaranteed)) return Qos::kGuaranteed;
  return name == to_string(Qos::kBurstable) ? Qos::kBurstable : Qos::kBestEffort;
}

Mode mode_from(const std::string& name) {
  for (const Mode mode : {Mode::kExclusive, Mode::kReserved, Mode::kForeign}) {
    if (name == to_string(mode)) return mode;
  }
  return Mode::kShared;
}

HoldingState state_from(const std::string& name) {
  if (name == "bound") return HoldingState::kBound;
  return name == "crashed" ? HoldingState::kCrashed : HoldingState::kInDoubt;
}

Holding holding_from(const LiveRow& row) {
  Holding holding;
  const DecidedRow& decided = row.decided;
  Workload& workload = holding.workload;
  workload.key = {decided.pod_uid, decided.container, decided.attempt, decided.sandbox_id};
  workload.pod_name = decided.pod_name;
  workload.pod_namespace = decided.pod_namespace;
  workload.runtime_handler = decided.runtime_handler;
  workload.qos = qos_from(decided.qos);
  workload.demand.cpu_request_milli = decided.cpu_request_milli;
  workload.demand.cpu_limit_milli = decided.cpu_limit_milli;
  workload.demand.memory_request_bytes = decided.memory_request_bytes;
  workload.demand.memory_limit_bytes = decided.memory_limit_bytes;
  workload.demand.memory_request_estimated = decided.memory_request_estimated;
  workload.demand.hugepage_limit_bytes = decided.hugepage_limit_bytes;
  workload.settings = decided.settings;
  workload.kubelet_cpus = decided.kubelet_cpus;
  workload.kubelet_mems = decided.kubelet_mems;
  holding.placement = {mode_from(decided.mode), row.cpus, decided.withheld, decided.mems};
  holding.within = decided.within;
  holding.asked_on = row.cpus;
  holding.conflict = decided.event == "conflict";
  holding.state = state_from(row.state);
  holding.container_id = holding.state == HoldingState::kInDoubt ? "" : row.container_id;
  holding.doubt_since = holding.crashed_since = std::chrono::milliseconds(row.pending_since_ms);
  *holding.decision = row.decision;
  return holding;
}

}  // namespace

Bookings::Bookings(Parts parts)
    : ledger_(std::move(parts.ledger)),
      journal_(parts.journal),
      lanes_(parts.lanes),
      clock_(std::move(parts.clock)),
      log_(parts.log),
      happened_(std::move(parts.happened)),
      freed_(std::move(parts.freed)) {}

void Bookings::tell(Happening::Kind kind, const ContainerKey& key) const {
  const Holding* holding = ledger_.find(key);
  if (happened_ && holding != nullptr && holding->state == HoldingState::kBound) happened_(kind, *holding);
}

void Bookings::load(const std::vector<LiveRow>& rows, std::uint64_t generation) {
  ledger_ = Ledger(ledger_.rules(), generation + 1);
  for (const LiveRow& row : rows) ledger_.put(holding_from(row));
  for (const LiveRow& row : rows) {
    const Holding* holding = ledger_.find(holding_from(row).workload.key);
    if (holding == nullptr || holding->placement.cpus == row.cpus) continue;
    journal_.write([decision = row.decision, cpus = holding->placement.cpus](Store& store) {
      return store.set_live_cpus(decision, cpus);
    });
  }
  journal_.write([generation = ledger_.generation(), at = now_ms(), pool = ledger_.pool()](Store& store) {
    return store.add_pool(generation, at, pool);
  });
  for (const auto& [key, holding] : ledger_.holdings()) tell(Happening::Kind::kPlaced, key);
}

DecidedRow Bookings::row_for(const Workload& workload, std::string_view event) const {
  DecidedRow row;
  row.at_ms = now_ms();
  row.event = event;
  row.pod_uid = workload.key.pod_uid;
  row.pod_namespace = workload.pod_namespace;
  row.pod_name = workload.pod_name;
  row.container = workload.key.name;
  row.attempt = workload.key.attempt;
  row.sandbox_id = workload.key.sandbox_id;
  row.runtime_handler = workload.runtime_handler;
  row.qos = to_string(workload.qos);
  row.cpu_request_milli = workload.demand.cpu_request_milli;
  row.cpu_limit_milli = workload.demand.cpu_limit_milli;
  row.memory_request_bytes = workload.demand.memory_request_bytes;
  row.memory_limit_bytes = workload.demand.memory_limit_bytes;
  row.memory_request_estimated = workload.demand.memory_request_estimated;
  row.hugepage_limit_bytes = workload.demand.hugepage_limit_bytes;
  row.settings = workload.settings;
  row.kubelet_cpus = workload.kubelet_cpus;
  row.kubelet_mems = workload.kubelet_mems;
  row.generation = ledger_.generation();
  return row;
}

std::vector<std::string> Bookings::place(const Workload& workload, const Decision& decision, std::string_view event,
                                         Kept kept) {
  Holding holding;
  holding.leaving = std::move(kept.leaving);
  holding.home = std::move(kept.home);
  holding.came = std::move(kept.came);
  holding.workload = workload;
  holding.placement = decision.placement;
  holding.within = decision.within;
  holding.asked_on = decision.placement.cpus;
  holding.conflict = decision.conflict;
  if (const Holding* before = ledger_.find(workload.key); before != nullptr) {
    holding.container_id = before->container_id;
    holding.state = before->state;
    holding.started = before->started;
    holding.decision = before->decision;
  } else if (const Holding* crashed = ledger_.find_crashed(workload.key); crashed != nullptr) {
    holding.decision = crashed->decision;
  }
  DecidedRow row = row_for(workload, event);
  row.container_id = holding.container_id;
  row.nodes = decision.nodes.to_string();
  row.reason = decision.reason;
  row.verdicts = decision.verdicts;
  denied_.erase(workload.key);
  std::vector<std::string> in_the_way = book(std::move(holding), std::move(row));
  tell(event == "resized" ? Happening::Kind::kResized : Happening::Kind::kMoved, workload.key);
  return in_the_way;
}

std::vector<std::string> Bookings::place_bound(const Workload& workload, const Decision& decision,
                                               std::string_view event, const ContainerInfo& container) {
  const Holding* before = ledger_.find(workload.key);
  const bool known = before != nullptr && before->state == HoldingState::kBound;
  std::vector<std::string> in_the_way = place(workload, decision, event);
  ledger_.bind(workload.key, container.id);
  if (container.state != ContainerState::kCreated) ledger_.set_started(workload.key);
  add_outcome(*ledger_.find(workload.key), "bound", {});
  if (!known) tell(Happening::Kind::kPlaced, workload.key);
  return in_the_way;
}

std::vector<std::string> Bookings::book(Holding holding, DecidedRow row) {
  const ContainerKey key = holding.workload.key;
  const CpuSet pool_before = ledger_.pool();
  std::vector<ContainerKey> moved = ledger_.put(std::move(holding));
  const Holding* crashed = ledger_.find_crashed(key);
  if (crashed != nullptr && crashed->decision == ledger_.find(key)->decision) {
    const ContainerKey earlier = crashed->workload.key;
    for (ContainerKey& other : ledger_.release(earlier)) moved.push_back(std::move(other));
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    std::erase(moved, key);
  }
  const Holding& booked = *ledger_.find(key);
  row.generation = ledger_.generation();
  row.mode = to_string(booked.placement.mode);
  row.cpus = booked.placement.cpus;
  row.within = booked.within;
  row.withheld = booked.placement.withheld;
  row.mems = booked.placement.mems;
  // At its first run everything before it is committed, so the cell holds a number that stands. A run whose commit
  // fails leaves a number in the cell that never came to be: a later run must not take that for the one before.
  journal_.write([row = std::move(row), cell = booked.decision, is_first = true](Store& store) mutable {
    if (std::exchange(is_first, false) && *cell != 0) row.supersedes = *cell;
    const auto added = store.add(row);
    if (added) *cell = *added;
    return to_status(added);
  });
  if (booked.state == HoldingState::kBound) {
    add_outcome(booked, "bound", {});
    lanes_.set_target(booked.container_id, target_of(booked));
  }
  propagate(moved, pool_before);
  return in_the_way(booked);
}

void Bookings::let_go_of_old_cpus(const ContainerKey& key, const std::string& why) {
  const Holding* before = ledger_.find(key);
  if (before == nullptr || before->leaving.empty()) return;
  const CpuSet pool_before = ledger_.pool();
  Holding holding = *before;
  holding.placement.withheld -= std::exchange(holding.leaving, {});
  DecidedRow row = row_for(holding.workload, holding.conflict ? "conflict" : "re-placed");
  row.container_id = holding.container_id;
  row.reason = why + "; it has left the CPUs it had before";
  book(std::move(holding), std::move(row));
  tell(Happening::Kind::kMoved, key);
  send_home();
  tell_if_freed(pool_before);
}

void Bookings::restore(const Holding& before, const std::string& why) {
  if (ledger_.find(before.workload.key) == nullptr) return;
  DecidedRow row = row_for(before.workload, before.conflict ? "conflict" : "re-placed");
  row.container_id = before.container_id;
  row.reason = why;
  book(before, std::move(row));
  tell(Happening::Kind::kMoved, before.workload.key);
}

void Bookings::deny(const Workload& workload, const Decision& decision) {
  const auto known = denied_.find(workload.key);
  if (known != denied_.end() && known->second.reason == decision.reason) {
    journal_.write(
        [cell = known->second.decision, at = now_ms()](Store& store) { return store.count_repeat(*cell, at); });
    return;
  }
  DecidedRow row = row_for(workload, "denied");
  row.reason = decision.reason;
  row.verdicts = decision.verdicts;
  row.holds = false;
  auto cell = std::make_shared<std::int64_t>(0);
  journal_.write([row = std::move(row), cell](Store& store) {
    const auto added = store.add(row);
    if (added) *cell = *added;
    return to_status(added);
  });
  if (denied_.size() >= kRememberedDenials) denied_.clear();
  denied_[workload.key] = {decision.reason, cell};
}

void Bookings::remark(const Holding& holding, std::string_view event, const std::string& reason) {
  DecidedRow row = row_for(holding.workload, event);
  row.container_id = holding.container_id;
  row.mode = to_string(holding.placement.mode);
  row.cpus = holding.placement.cpus;
  row.reason = reason;
  row.holds = false;
  journal_.write([row = std::move(row)](Store& store) { return to_status(store.add(row)); });
}

void Bookings::add_outcome(const Holding& holding, const char* state, const Answer& answer) {
  OutcomeRow row;
  row.at_ms = now_ms();
  row.state = state;
  row.container_id = holding.container_id;
  row.code = static_cast<int>(answer.code);
  row.message = answer.message;
  journal_.write([row = std::move(row), cell = holding.decision](Store& store) mutable {
    row.decision = *cell;
    return store.add(row);
  });
}

void Bookings::yes(const ContainerKey& key, const std::string& container_id, const CpusetTarget& sent) {
  if (const Holding* before = ledger_.find(key); before != nullptr) lanes_.close(before->container_id);
  if (!ledger_.bind(key, container_id)) return;
  const Holding& holding = *ledger_.find(key);
  add_outcome(holding, "bound", {});
  if (holding.placement.mode != Mode::kForeign) lanes_.open(container_id, sent, target_of(holding));
  tell(Happening::Kind::kPlaced, key);
}

void Bookings::no(const ContainerKey& key, const Answer& answer) {
  const Holding* holding = ledger_.find(key);
  if (holding == nullptr) return;
  add_outcome(*holding, "refused", answer);
  release(key, "refused");
}

void Bookings::in_doubt(const ContainerKey& key, const Answer& answer) {
  if (!ledger_.set_doubt(key, clock_.wall())) return;
  add_outcome(*ledger_.find(key), "in_doubt", answer);
}

void Bookings::found(const ContainerKey& key, const ContainerInfo& container) {
  if (!ledger_.bind(key, container.id)) return;
  if (container.state != ContainerState::kCreated) ledger_.set_started(key);
  const Holding& holding = *ledger_.find(key);
  add_outcome(holding, "bound", {});
  if (holding.placement.mode != Mode::kForeign) lanes_.open(container.id, std::nullopt, target_of(holding));
  tell(Happening::Kind::kPlaced, key);
}

void Bookings::take_over(const ContainerKey& key) { ledger_.set_in_flight(key); }

void Bookings::time_out(const ContainerKey& key) {
  const Holding* holding = ledger_.find(key);
  if (holding == nullptr) return;
  add_outcome(*holding, "timed_out", {});
  release(key, "pending-timeout");
}

void Bookings::started(const ContainerKey& key) {
  const Holding* before = ledger_.find(key);
  if (before == nullptr || before->started) return;
  ledger_.set_started(key);
  tell(Happening::Kind::kStarted, key);
}

void Bookings::resize(const ContainerKey& key, const Demand& demand, const std::string& why) {
  const Holding* before = ledger_.find(key);
  if (before == nullptr || before->workload.demand == demand) return;
  Holding holding = *before;
  holding.workload.demand = demand;
  DecidedRow row = row_for(holding.workload, "resized");
  row.container_id = holding.container_id;
  row.reason = why;
  book(std::move(holding), std::move(row));
  tell(Happening::Kind::kResized, key);
}

/// To those who hear of it the container is over.
void Bookings::crash(const ContainerKey& key, std::int32_t exit_code) {
  tell(Happening::Kind::kReleased, key);
  if (!ledger_.set_crashed(key, clock_.wall())) return;
  const Holding& holding = *ledger_.find(key);
  add_outcome(
      holding, "crashed",
      {Code::kOk,
       fmt::format("exit code {}; {} is kept for its next attempt", exit_code, holding.placement.cpus.to_string()),
       {}});
  lanes_.close(holding.container_id);
  log_.info("{}/{}/{}: failed with exit code {}; {} is kept for its next attempt", holding.workload.pod_namespace,
            holding.workload.pod_name, holding.workload.key.name, exit_code, holding.placement.cpus.to_string());
}

std::vector<ContainerKey> Bookings::crashed() const {
  std::vector<std::pair<std::chrono::milliseconds, ContainerKey>> found;
  for (const auto& [key, holding] : ledger_.holdings()) {
    if (holding.state == HoldingState::kCrashed) found.emplace_back(holding.crashed_since, key);
  }
  std::sort(found.begin(), found.end());
  std::vector<ContainerKey> keys;
  for (auto& [since, key] : found) keys.push_back(std::move(key));
  return keys;
}

Placement Bookings::last_of(const ContainerKey& key) const {
  if (const Holding* crashed = ledger_.find_crashed(key); crashed != nullptr) return crashed->placement;
  const auto known = last_.find({key.pod_uid, key.name});
  return known == last_.end() ? Placement() : known->second;
}

void Bookings::remember(const Holding& holding) {
  const ContainerKey& key = holding.workload.key;
  if (holding.placement.mode != Mode::kExclusive || key.pod_uid.empty()) return;
  if (last_.size() >= kRememberedPlacements) last_.clear();
  last_[{key.pod_uid, key.name}] = holding.placement;
}

void Bookings::release(const ContainerKey& key, const std::string& cause) {
  const Holding* found = ledger_.find(key);
  if (found == nullptr) return;
  tell(Happening::Kind::kReleased, key);
  const Holding holding = *found;
  remember(holding);
  const CpuSet pool_before = ledger_.pool();
  const std::vector<ContainerKey> moved = ledger_.release(key);
  end(holding, cause);
  if (!holding.container_id.empty()) lanes_.close(holding.container_id);
  propagate(moved, pool_before);
  send_home();
  tell_if_freed(pool_before);
}

void Bookings::tell_if_freed(const CpuSet& pool_before) const {
  if (freed_ && !ledger_.pool().is_subset_of(pool_before)) freed_();
}

void Bookings::send_home() {
  const LedgerRules& rules = ledger_.rules();
  std::vector<ContainerKey> back;
  for (const auto& [key, holding] : ledger_.holdings()) {
    if (!holding.home || holding.home->placement.mode == Mode::kExclusive) continue;
    const CpuSet& within = holding.home->within;
    const bool reserved = holding.placement.mode == Mode::kReserved;
    const bool is_there = !holding.home->whole || within.is_subset_of(rules.allowed);
    if (is_there && within.intersects(reserved ? ledger_.pool() | rules.reserved : ledger_.pool())) back.push_back(key);
  }
  for (const ContainerKey& key : back) {
    const Holding before = *ledger_.find(key);
    Decision decision;
    decision.placement = before.placement;
    decision.placement.cpus = decision.within = before.home->within;
    decision.nodes = before.home->nodes;
    decision.reason = "CPUs that it had to leave are free again: it goes back to " + decision.within.to_string();
    place(before.workload, decision, "re-placed");
  }
}

void Bookings::end(const Holding& holding, const std::string& cause) {
  EndedRow row;
  row.at_ms = now_ms();
  row.generation = ledger_.generation();
  row.cause = cause;
  journal_.write([row = std::move(row), cell = holding.decision](Store& store) mutable {
    row.decision = *cell;
    return store.add(row);
  });
  log_.info("{}/{}/{}: gave back {} ({})", holding.workload.pod_namespace, holding.workload.pod_name,
            holding.workload.key.name, holding.placement.cpus.to_string(), cause);
}

void Bookings::set_rules(LedgerRules rules) {
  const CpuSet pool_before = ledger_.pool();
  propagate(ledger_.set_rules(std::move(rules)), pool_before);
  send_home();
}

void Bookings::propagate(const std::vector<ContainerKey>& moved, const CpuSet& pool_before) {
  struct Move {
    DecisionCell decision;
    CpuSet cpus;
  };
  std::vector<Move> moves;
  for (const ContainerKey& key : moved) {
    const Holding& holding = *ledger_.find(key);
    moves.push_back({holding.decision, holding.placement.cpus});
  }
  if (ledger_.pool() != pool_before || !moves.empty()) {
    journal_.write([moves = std::move(moves), generation = ledger_.generation(), at = now_ms(), pool = ledger_.pool(),
                    same = ledger_.pool() == pool_before](Store& store) -> Status {
      if (!same) {
        if (Status added = store.add_pool(generation, at, pool); !added) return added;
      }
      for (const Move& move : moves) {
        if (Status set = store.set_live_cpus(*move.decision, move.cpus); !set) return set;
      }
      return {};
    });
  }
  for (const ContainerKey& key : moved) {
    const Holding& holding = *ledger_.find(key);
    if (holding.state == HoldingState::kBound) lanes_.set_target(holding.container_id, target_of(holding));
    tell(Happening::Kind::kMoved, key);
  }
}

std::vector<std::string> Bookings::in_the_way(const Holding& holding) const {
  CpuSet cpus = holding.placement.withheld;
  if (holding.placement.mode == Mode::kExclusive) cpus |= holding.placement.cpus;
  std::vector<std::string> ids;
  if (cpus.empty()) return ids;
  for (const auto& [key, other] : ledger_.holdings()) {
    if (key == holding.workload.key || other.state != HoldingState::kBound || !lanes_.has(other.container_id)) continue;
    if (other.conflict) continue;  // stays where the kubelet put it
    const std::optional<CpusetTarget> confirmed = lanes_.confirmed(other.container_id);
    if (!confirmed || confirmed->cpus.intersects(cpus)) ids.push_back(other.container_id);
  }
  return ids;
}

}  // namespace topolet
