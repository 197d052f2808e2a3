// The allocations of now and of the past, exactly as they were at each moment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/audit/pool_record.hpp"
#include "core/audit/record.hpp"
#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

/// All that is held at one moment. Where a container that follows the pool runs is told by the pool of that moment: it
/// changes without a decision of its own.
class State {
 public:
  State() = default;
  State(std::map<std::int64_t, Record> held, std::optional<PoolRecord> pool)
      : held_(std::move(held)), pool_(std::move(pool)) {}

  /// The records by decision.
  const std::map<std::int64_t, Record>& held() const { return held_; }
  const std::optional<PoolRecord>& pool() const { return pool_; }

  /// The CPUs on which it runs.
  CpuSet cpus_of(const Record& record) const;
  /// The CPUs that are kept idle for it: of those withheld when it was decided, the ones that nobody has taken and that
  /// are not free again.
  CpuSet withheld_of(const Record& record) const;

  void add(Record record);
  void end(std::int64_t decision) { held_.erase(decision); }
  void set_pool(PoolRecord pool);

 private:
  std::map<std::int64_t, Record> held_;
  std::optional<PoolRecord> pool_;
};

/// Reads the audit. `database` must outlive it.
class History {
 public:
  explicit History(const store::Database& database) : database_(database) {}

  /// Reads all that was held at that time: decided until then, and not ended.
  Result<State> at(std::int64_t at_ms) const;

  /// Reads a decision; NOT_FOUND if there is none with this number.
  Result<Record> decision(std::int64_t number) const;

  const store::Database& database() const { return database_; }

 private:
  Result<std::vector<std::int64_t>> held_at(std::int64_t at_ms) const;
  Status note_kept(std::int64_t at_ms, std::map<std::int64_t, Record>& held) const;
  Status find_last_cpus(std::int64_t generation, Record& record) const;

  const store::Database& database_;
  mutable std::optional<store::Statement> find_decision_;  ///< prepared when it is needed first
};

}  // namespace topolet::audit
