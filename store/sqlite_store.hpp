// The store in a file, or in memory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "store/checkpointer.hpp"
#include "store/column_statements.hpp"
#include "store/database.hpp"
#include "store/file_watch.hpp"
#include "store/generation_notes.hpp"
#include "store/integrity_check.hpp"
#include "store/open_database.hpp"
#include "store/retention.hpp"
#include "store/state_directory.hpp"
#include "store/statements.hpp"
#include "store/store.hpp"
#include "store/transactions.hpp"

namespace topolet::store {

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(StoreOptions options) : options_(std::move(options)) {}

  const OpenReport& report() const override { return report_; }

  /// Each is to be called once, before anything else, and leaves nothing open if it fails.
  Status open();
  Status open_in_memory();
  Status open_detached(const Error& why);

  std::optional<FileLoss> find_file_loss() override;
  Result<std::filesystem::path> reopen(const FileLoss& loss, const LastNumbers& last, std::int64_t now_ms) override;
  void on_reopened(std::function<void()> reopened) override { on_reopened_ = std::move(reopened); }
  Status skip_decisions(std::int64_t last) override;

  Status begin() override;
  Status commit() override;
  void roll_back() override;
  Status savepoint(const std::function<Status()>& work) override;

  Result<std::int64_t> add(const DecidedRow& row) override;
  Status add(const OutcomeRow& row) override;
  Status add(const EndedRow& row) override;
  Status put_allocation(std::int64_t decision, const Columns& columns) override;
  Status update_allocation(std::int64_t decision, const Columns& columns) override;
  Status count_repeat(std::int64_t decision, std::int64_t at_ms) override;
  Status add(const PoolRow& row) override;
  Status put_whole_pool(const WholePoolRow& row) override;
  Status add(const TopologyRow& row) override;
  Status add(const SetupRow& row) override;
  Status set_generation(std::uint64_t generation) override;
  Status put_pod(const Columns& columns) override;
  Status remove_pod(const std::string& sandbox_id) override;
  Status put_capacity(std::uint32_t node, const Columns& columns) override;
  Status remove_capacity(std::uint32_t node) override;
  Status put_recent_sizes(const std::vector<RecentSizeRow>& rows) override;

  Result<std::vector<AllocationRow>> allocations() override;
  Result<std::vector<PodRow>> pods() override;
  Result<std::vector<CapacityRow>> capacities() override;
  Result<std::vector<RecentSizeRow>> recent_sizes() override;
  Result<std::uint64_t> last_generation() override;
  Result<std::int64_t> last_decision() override;
  Result<std::optional<CpuSet>> last_allowed() override;
  Result<std::string> last_reason_code(const std::string& event) override;
  Result<std::vector<DenialRow>> recent_denials(std::int64_t since_ms) override;
  Result<std::int64_t> last_setup() override;
  Result<RetentionPass> run_retention_pass(const Moment& now, std::int64_t rows) override;
  std::optional<StoreFigures> figures() const TOPOLET_EXCLUDES(figures_mutex_) override {
    MutexLock lock(figures_mutex_);
    return figures_;
  }
  void write_generation_file(std::uint64_t generation) override;
  void note_generation(std::uint64_t generation) override { notes_.note(generation); }
  void check_integrity(std::function<void(const IntegrityReport&)> report) override;

 private:
  Status refresh_figures(const Moment& now) TOPOLET_EXCLUDES(figures_mutex_);
  Status open_file(const LastNumbers* last, std::int64_t now_ms);
  Status try_file(const LastNumbers* last, std::int64_t now_ms);
  Status claim_directory() TOPOLET_EXCLUDES(generation_file_mutex_);
  Status claim_again() TOPOLET_EXCLUDES(generation_file_mutex_);
  Status check_numbers(const LastNumbers& last);
  void keep_open(const std::filesystem::path& file);
  Status set_aside(const char* kind, const std::string& why, std::int64_t now_ms);
  void use(OpenedDatabase opened);
  void close_file();
  void start_integrity_check();
  Status begin_boot(std::int64_t now_ms);
  void detect_lost_generations();

  template <class Work>
  auto in_transaction(Work work) -> decltype(work());

  Status end_other_boots(std::int64_t now_ms);
  Result<std::int64_t> insert(const DecidedRow& row);
  Status add_load(std::int64_t decision, const DecidedRow& row);
  Status add_held_cpus(std::int64_t decision, const HeldCpus& held);
  Status end(const EndedRow& row);

  const StoreOptions options_;
  Retention retention_{options_.retention};
  // The order matters: statements go before their connection, which writes the rest of the log into the file as the
  // last one, and the lock goes last.
  /// None for a database in memory. Changed by the writer's thread, under generation_file_mutex_.
  std::optional<StateDirectory> directory_;
  Database too_old_;  ///< the file that was set aside because of its schema
  Database database_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<IntegrityCheck> integrity_check_;
  Statements statements_;

  /// Watches the file; none where there is no file.
  std::optional<FileWatch> watch_;
  /// Why there is no file to write to.
  std::optional<Error> detached_;
  bool may_make_directory_ = options_.may_make_directory;  ///< no more once it was there
  bool is_of_another_boot_ = false;                        ///< detached: the file tells of a time before a reboot
  std::function<void()> on_reopened_;
  std::function<void(const IntegrityReport&)> report_integrity_;

  OpenReport report_;
  std::int64_t boot_ = 0;
  ColumnStatements column_statements_;
  std::optional<std::chrono::steady_clock::time_point> figures_of_;
  mutable Mutex figures_mutex_;
  std::optional<StoreFigures> figures_ TOPOLET_GUARDED_BY(figures_mutex_);
  Mutex generation_file_mutex_;
  std::uint64_t generation_in_file_ TOPOLET_GUARDED_BY(generation_file_mutex_) = 0;
  GenerationNotes notes_{[this](std::uint64_t generation) { write_generation_file(generation); }};
  Transactions transactions_{database_, statements_};
};

template <class Work>
auto SqliteStore::in_transaction(Work work) -> decltype(work()) {
  if (detached_) return *detached_;
  return transactions_.run(std::move(work));
}

}  // namespace topolet::store
