#include "core/audit/moves.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/audit/pool_record.hpp"
#include "core/audit/rows.hpp"
#include "core/base/clock.hpp"
#include "core/placement/move_kind.hpp"
#include "store/retention.hpp"

namespace topolet::audit {
namespace {

/// The effects of one change of the ledger.
struct Step {
  struct Decided {
    std::int64_t decision = 0;
    std::optional<std::int64_t> caused_by;
    std::string reason_code;
  };
  std::int64_t at_ms = 0;
  std::vector<Decided> decided;
  std::vector<std::int64_t> ended;
  std::optional<PoolRecord> pool;
};
using Steps = std::map<std::int64_t, Step>;  // by generation

Result<Steps> read_steps(const store::Database& database, std::int64_t since_ms, std::int64_t until_ms) {
  Steps steps;
  const auto step_of = [&](const store::Statement& row) -> Step& {
    Step& step = steps[row.integer(0)];
    step.at_ms = row.integer(1);
    return step;
  };
  Status read = for_each_row(
      database,
      "SELECT generation, at_ms, decision, caused_by, reason_code FROM decided "
      "WHERE at_ms > ?1 AND at_ms <= ?2 AND holds ORDER BY decision",
      [&](const store::Statement& row) -> Status {
        Step::Decided decided{row.integer(2), std::nullopt, row.text(4)};
        if (!row.is_null(3)) decided.caused_by = row.integer(3);
        step_of(row).decided.push_back(decided);
        return {};
      },
      since_ms, until_ms);
  if (!read) return read.error();
  read = for_each_row(
      database, "SELECT generation, at_ms, decision FROM ended WHERE at_ms > ?1 AND at_ms <= ?2",
      [&](const store::Statement& row) -> Status {
        step_of(row).ended.push_back(row.integer(2));
        return {};
      },
      since_ms, until_ms);
  if (!read) return read.error();
  auto pools = pools_between(database, since_ms, until_ms);
  if (!pools) return pools.error();
  for (PoolRecord& pool : *pools) {
    Step& step = steps[static_cast<std::int64_t>(pool.generation)];
    step.at_ms = pool.at_ms;
    step.pool = std::move(pool);
  }
  return steps;
}

/// One attempt of one container, whatever decision it is held by.
using Container = std::tuple<std::string, std::string, std::string, std::int64_t>;
Container container_of(const Record& record) {
  return {record.pod_uid, record.pod_name, record.container, record.attempt};
}

class Replay {
 public:
  explicit Replay(State state) : state_(std::move(state)) {
    for (const auto& [decision, record] : state_.held()) cpus_[decision] = state_.cpus_of(record);
  }

  Status apply(const History& history, const Step& step) {
    std::map<Container, CpuSet> left;  // where those were whose decision another one replaces
    for (const std::int64_t decision : step.ended) {
      const auto held = state_.held().find(decision);
      if (held == state_.held().end()) continue;
      left[container_of(held->second)] = cpus_[decision];
      cpus_.erase(decision);
      state_.end(decision);
    }
    if (step.pool) state_.set_pool(*step.pool);
    for (const Step::Decided& decided : step.decided) {
      auto record = history.decision(decided.decision);
      if (!record) return record.error();
      state_.add(*record);
      const CpuSet to = cpus_[decided.decision] = state_.cpus_of(*record);
      const auto from = left.find(container_of(*record));
      if (from == left.end() || from->second == to) continue;
      moves_.push_back({step.at_ms, *record, from->second, to, false,
                        std::string(placement::move_kind(record->event, decided.reason_code)), record->event,
                        decided.caused_by});
    }
    if (step.pool) follow_pool(step);
    return {};
  }

  std::vector<Moved> take_moves() && { return std::move(moves_); }

 private:
  void follow_pool(const Step& step) {
    for (const auto& [decision, record] : state_.held()) {
      if (!record.follows_pool()) continue;
      CpuSet to = state_.cpus_of(record);
      CpuSet& from = cpus_[decision];
      if (from == to) continue;
      moves_.push_back({step.at_ms, record, from, to, true, std::string(placement::kPoolMove), step.pool->cause,
                        step.pool->caused_by});
      from = std::move(to);
    }
  }

  State state_;
  std::map<std::int64_t, CpuSet> cpus_;
  std::vector<Moved> moves_;
};

Status add_effects(const store::Database& database, std::int64_t since_ms, std::int64_t until_ms,
                   std::vector<Moved>& moves) {
  const auto localities = Localities::between(database, since_ms, until_ms);
  if (!localities) return localities.error();
  std::map<std::int64_t, NodeSet> device_nodes;  // by decision: whoever follows the pool moves often
  for (Moved& move : moves) {
    const auto [nodes, is_new] = device_nodes.try_emplace(move.record.decision);
    if (is_new) {
      auto found = device_nodes_of(database, move.record.decision);
      if (!found) return found.error();
      nodes->second = *std::move(found);
    }
    // Whoever follows the pool stays on its nodes.
    const auto memory =
        move.with_pool ? Result<NotedMemory>(NotedMemory()) : noted_memory_of(database, move.record.decision);
    if (!memory) return memory.error();
    move.effects = localities->effects(move.record, move.from, move.to, nodes->second, *memory);
  }
  return {};
}

}  // namespace

Result<std::vector<Moved>> moves_between(const History& history, std::int64_t since_ms, std::int64_t until_ms) {
  const auto first = store::believable_pruned_until(history.database(), Clock().wall().count());
  if (!first) return first.error();
  since_ms = std::max(since_ms, *first);
  auto state = history.at(since_ms);
  if (!state) return state.error();
  const auto steps = read_steps(history.database(), since_ms, until_ms);
  if (!steps) return steps.error();
  Replay replay(*std::move(state));
  for (const auto& [generation, step] : *steps) {
    if (Status applied = replay.apply(history, step); !applied) return applied.error();
  }
  std::vector<Moved> moves = std::move(replay).take_moves();
  if (Status added = add_effects(history.database(), since_ms, until_ms, moves); !added) return added.error();
  return moves;
}

}  // namespace topolet::audit
