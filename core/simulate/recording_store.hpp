// The store as one daemon has it, until it is killed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/audit_event.hpp"
#include "store/store.hpp"

namespace topolet::simulate {

/// The decisions that were written, and what repeats them.
struct RecordedDecisions {
  std::vector<store::DecidedRow> rows;                ///< a denial that is repeated is there again, without verdicts
  std::map<std::int64_t, store::DecidedRow> denials;  ///< by decision, all that there ever were
};

/// Passes everything on to a store that outlives the daemon, and notes the decisions. Once `killed` returns true,
/// nothing is written any more, as a killed daemon would not write either.
class RecordingStore final : public store::Store {
 public:
  RecordingStore(store::Store& store, RecordedDecisions& decisions, std::function<bool()> killed)
      : store_(store), decisions_(decisions), killed_(std::move(killed)) {}

  const store::OpenReport& report() const override { return store_.report(); }
  Status skip_decisions(std::int64_t last) override { return store_.skip_decisions(last); }
  Status begin() override { return killed_() ? gone() : store_.begin(); }
  Status commit() override { return killed_() ? gone() : store_.commit(); }
  void roll_back() override { store_.roll_back(); }
  Status savepoint(const std::function<Status()>& work) override { return killed_() ? gone() : store_.savepoint(work); }
  Result<std::int64_t> add(const store::DecidedRow& row) override {
    if (killed_()) return gone().error();
    decisions_.rows.push_back(row);
    if (row.event == to_string(engine::AuditEvent::kDenied)) note_denial(row);
    return store_.add(row);
  }
  Status add(const store::OutcomeRow& row) override { return killed_() ? gone() : store_.add(row); }
  Status add(const store::EndedRow& row) override { return killed_() ? gone() : store_.add(row); }
  Status put_allocation(std::int64_t decision, const store::Columns& columns) override {
    return killed_() ? gone() : store_.put_allocation(decision, columns);
  }
  Status update_allocation(std::int64_t decision, const store::Columns& columns) override {
    return killed_() ? gone() : store_.update_allocation(decision, columns);
  }
  Status count_repeat(std::int64_t decision, std::int64_t at_ms) override {
    if (killed_()) return gone();
    if (const auto repeated = decisions_.denials.find(decision); repeated != decisions_.denials.end())
      decisions_.rows.push_back(repeated->second);
    return store_.count_repeat(decision, at_ms);
  }
  Status add(const store::PoolRow& row) override { return killed_() ? gone() : store_.add(row); }
  Status put_whole_pool(const store::WholePoolRow& row) override {
    return killed_() ? gone() : store_.put_whole_pool(row);
  }
  Status add(const store::TopologyRow& row) override { return killed_() ? gone() : store_.add(row); }
  Status add(const store::SetupRow& row) override { return killed_() ? gone() : store_.add(row); }
  Status set_generation(std::uint64_t generation) override {
    return killed_() ? gone() : store_.set_generation(generation);
  }
  Status put_pod(const store::Columns& columns) override { return killed_() ? gone() : store_.put_pod(columns); }
  Status remove_pod(const std::string& sandbox_id) override {
    return killed_() ? gone() : store_.remove_pod(sandbox_id);
  }
  Status put_capacity(std::uint32_t node, const store::Columns& columns) override {
    return killed_() ? gone() : store_.put_capacity(node, columns);
  }
  Status remove_capacity(std::uint32_t node) override { return killed_() ? gone() : store_.remove_capacity(node); }
  Status put_recent_sizes(const std::vector<store::RecentSizeRow>& rows) override {
    return killed_() ? gone() : store_.put_recent_sizes(rows);
  }
  Result<std::vector<store::RecentSizeRow>> recent_sizes() override { return store_.recent_sizes(); }
  Result<std::vector<store::AllocationRow>> allocations() override { return store_.allocations(); }
  Result<std::vector<store::PodRow>> pods() override { return store_.pods(); }
  Result<std::vector<store::CapacityRow>> capacities() override { return store_.capacities(); }
  Result<std::uint64_t> last_generation() override { return store_.last_generation(); }
  Result<std::int64_t> last_decision() override { return store_.last_decision(); }
  Result<std::optional<CpuSet>> last_allowed() override { return store_.last_allowed(); }
  Result<std::string> last_reason_code(const std::string& event) override { return store_.last_reason_code(event); }
  Result<std::int64_t> last_setup() override { return store_.last_setup(); }
  Result<store::RetentionPass> run_retention_pass(const store::Moment& now, std::int64_t rows) override {
    return store_.run_retention_pass(now, rows);
  }
  void note_generation(std::uint64_t generation) override {
    if (!killed_()) store_.note_generation(generation);
  }
  void write_generation_file(std::uint64_t generation) override {
    if (!killed_()) store_.write_generation_file(generation);
  }

 private:
  /// What plugins say of the same denial another time need not be the same.
  void note_denial(store::DecidedRow row) {
    row.verdicts.reset();
    decisions_.denials[row.decision] = std::move(row);
  }
  static Status gone() { return Error{Code::kUnavailable, "the simulated daemon was killed"}; }

  store::Store& store_;
  RecordedDecisions& decisions_;
  const std::function<bool()> killed_;
};

}  // namespace topolet::simulate
