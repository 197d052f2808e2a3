// A store that fails, or stands still, when a test says so.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// A database in memory whose writes a test can delay or fail. Reads wait until nothing is being written.
class FaultyStore final : public store::Store {
 public:
  FaultyStore() : store_(*store::Store::open_in_memory("boot", 0)) {}

  /// From now on each transaction ends with this error; none: it succeeds again.
  void fail_with(std::optional<Error> error) TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    error_ = std::move(error);
  }
  /// The next transaction does not begin until release().
  void hold() TOPOLET_EXCLUDES(mutex_) { set_held(true); }
  void release() TOPOLET_EXCLUDES(mutex_) { set_held(false); }
  /// Waits until a transaction waits for release().
  void wait_until_held() TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!waits_) changed_.wait(mutex_);
  }
  /// Returns the number of transactions that were begun.
  std::size_t begun() TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return begun_;
  }

  /// The containers that hold something, in the order of the decisions.
  std::vector<std::string> holders() {
    std::vector<std::string> holders;
    const auto rows = store_->allocations();
    for (const store::AllocationRow& row : *rows) holders.push_back(std::get<std::string>(row.columns.at("container")));
    return holders;
  }

  /// The decisions that the database has: "placed a 0-1", event, container and CPUs.
  std::vector<std::string> decided() const { return decided_; }

  const store::OpenReport& report() const override { return store_->report(); }
  /// Sets the result of find_file_loss() until the next reopen().
  void lose(store::FileLoss loss) TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    loss_ = std::move(loss);
  }
  std::optional<store::FileLoss> find_file_loss() override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return loss_;
  }
  /// Begins with an empty database, in which transactions succeed.
  Result<std::filesystem::path> reopen(const store::FileLoss& loss, const store::LastNumbers& /*last*/,
                                       std::int64_t /*now_ms*/) override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    reopened_.push_back(loss);
    loss_.reset();
    error_.reset();
    store_ = *store::Store::open_in_memory("boot", 0);
    decided_.clear();
    return std::filesystem::path();
  }
  std::vector<store::FileLoss> reopened() TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return reopened_;
  }

  Status skip_decisions(std::int64_t last) override { return store_->skip_decisions(last); }
  Status begin() override TOPOLET_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      ++begun_;
      waits_ = held_;
      changed_.notify_all();
      while (held_) changed_.wait(mutex_);
      waits_ = false;
    }
    return store_->begin();
  }
  Status commit() override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const Status done = error_ ? Status(*error_) : store_->commit();
    if (done) decided_.insert(decided_.end(), decided_in_transaction_.begin(), decided_in_transaction_.end());
    decided_in_transaction_.clear();
    return done;
  }
  void roll_back() override {
    decided_in_transaction_.clear();
    store_->roll_back();
  }
  Status savepoint(const std::function<Status()>& work) override { return store_->savepoint(work); }
  Result<std::int64_t> add(const store::DecidedRow& row) override {
    decided_in_transaction_.push_back(row.event + " " + row.container + " " + row.cpus.to_string());
    return store_->add(row);
  }
  Status add(const store::OutcomeRow& row) override { return store_->add(row); }
  Status add(const store::EndedRow& row) override { return store_->add(row); }
  Status put_allocation(std::int64_t decision, const store::Columns& columns) override {
    return store_->put_allocation(decision, columns);
  }
  Status update_allocation(std::int64_t decision, const store::Columns& columns) override {
    return store_->update_allocation(decision, columns);
  }
  Status count_repeat(std::int64_t decision, std::int64_t at_ms) override {
    return store_->count_repeat(decision, at_ms);
  }
  Status add(const store::PoolRow& row) override { return store_->add(row); }
  Status put_whole_pool(const store::WholePoolRow& row) override { return store_->put_whole_pool(row); }
  Status add(const store::TopologyRow& row) override { return store_->add(row); }
  Status add(const store::SetupRow& row) override { return store_->add(row); }
  Status set_generation(std::uint64_t generation) override { return store_->set_generation(generation); }
  Status put_pod(const store::Columns& columns) override { return store_->put_pod(columns); }
  Status remove_pod(const std::string& sandbox_id) override { return store_->remove_pod(sandbox_id); }
  Status put_capacity(std::uint32_t node, const store::Columns& columns) override {
    return store_->put_capacity(node, columns);
  }
  Status remove_capacity(std::uint32_t node) override { return store_->remove_capacity(node); }
  Status put_recent_sizes(const std::vector<store::RecentSizeRow>& rows) override {
    return store_->put_recent_sizes(rows);
  }
  Result<std::vector<store::RecentSizeRow>> recent_sizes() override { return store_->recent_sizes(); }
  Result<std::vector<store::CapacityRow>> capacities() override { return store_->capacities(); }
  Result<std::vector<store::AllocationRow>> allocations() override { return store_->allocations(); }
  Result<std::vector<store::PodRow>> pods() override { return store_->pods(); }
  Result<std::uint64_t> last_generation() override { return store_->last_generation(); }
  Result<std::int64_t> last_decision() override { return store_->last_decision(); }
  Result<std::optional<CpuSet>> last_allowed() override { return store_->last_allowed(); }
  Result<std::string> last_reason_code(const std::string& event) override { return store_->last_reason_code(event); }
  Result<std::int64_t> last_setup() override { return store_->last_setup(); }
  /// Has so many retention passes be needed from now on; each takes that long, and works on all rows or none.
  void need_retention_passes(std::size_t passes, std::chrono::milliseconds each, bool has_rows = true)
      TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    passes_left_ = passes;
    pass_has_rows_ = has_rows;
    pass_time_ = each;
  }
  /// The rows that each pass was asked to do.
  std::vector<std::int64_t> retention_passes() TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return passes_;
  }
  Result<store::RetentionPass> run_retention_pass(const store::Moment& /*now*/, std::int64_t rows) override
      TOPOLET_EXCLUDES(mutex_) {
    std::chrono::milliseconds time{};
    store::RetentionPass done;
    {
      const MutexLock lock(mutex_);
      passes_.push_back(rows);
      if (passes_left_ > 0) --passes_left_;
      done.has_more = passes_left_ > 0;
      done.rows = pass_has_rows_ ? rows : 0;
      time = pass_time_;
    }
    std::this_thread::sleep_for(time);
    return done;
  }
  void note_generation(std::uint64_t generation) override { write_generation_file(generation); }
  void write_generation_file(std::uint64_t generation) override TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    noted_ = std::max(noted_, generation);
  }
  std::uint64_t noted() TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return noted_;
  }

 private:
  void set_held(bool held) TOPOLET_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  std::unique_ptr<store::Store> store_;
  std::vector<std::string> decided_;
  std::vector<std::string> decided_in_transaction_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<Error> error_ TOPOLET_GUARDED_BY(mutex_);
  std::optional<store::FileLoss> loss_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<store::FileLoss> reopened_ TOPOLET_GUARDED_BY(mutex_);
  bool pass_has_rows_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::size_t passes_left_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::chrono::milliseconds pass_time_ TOPOLET_GUARDED_BY(mutex_){};
  std::vector<std::int64_t> passes_ TOPOLET_GUARDED_BY(mutex_);
  bool held_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool waits_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::size_t begun_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::uint64_t noted_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

}  // namespace topolet::engine
