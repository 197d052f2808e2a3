// The state database: what is held now, and the audit of every decision. README.md beside this file documents the
// schema.
//
// The room store, namespace topolet::store: keeps rows and knows nothing of what they mean. Start at Store. Only
// database.cpp, log_vfs.cpp and table_function.cpp may include sqlite3.h. The room may include core/base and nothing
// else of this tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "store/limits.hpp"

namespace topolet::store {

/// CPUs of a decision that are to be found by CPU: rows of the table `held_cpu`.
struct HeldCpus {
  std::string kind;
  CpuSet cpus;
};

/// One audited event of one container. `event`: placed, unpinned, denied, re-placed, squeezed, resized, adopted,
/// foreign, conflict, drift, gap, quarantined, quarantine-ended… (an open set; a new event is no schema change).
struct DecidedRow {
  std::int64_t decision = 0;  ///< its number, never used before; 0: the next one
  std::int64_t at_ms = 0;     ///< Unix epoch
  std::uint64_t generation = 0;
  std::string event;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string container;
  std::uint32_t attempt = 0;
  std::string sandbox_id;
  std::string container_id;  ///< empty until known
  std::string runtime_handler;
  std::string qos;
  std::int64_t cpu_request_milli = 0;
  std::string cpu_request_certainty = "told";  ///< told, estimated, unknown, pod
  std::int64_t cpu_limit_milli = 0;
  std::int64_t memory_request_bytes = 0;
  std::int64_t memory_limit_bytes = 0;
  bool memory_request_estimated = false;
  std::int64_t oom_score_adj = 0;                                 ///< that it was read from; 0: none
  std::map<std::string, std::int64_t> hugepage_limit_bytes = {};  ///< by page size, "2MB"
  std::map<std::string, std::string> settings = {};               ///< the topolet.io annotations that counted
  std::string mode;
  CpuSet cpus;    ///< as they were set
  CpuSet within;  ///< the CPUs that it may use when they are in the pool; empty where it does not follow the pool
  CpuSet withheld;
  NodeSet mems;
  CpuSet kubelet_cpus;
  NodeSet kubelet_mems = {};
  std::string nodes;  ///< the winning candidate's node list
  std::string reason;
  std::optional<std::string> verdicts;         ///< compact JSON, written as it is; README.md gives its shape
  std::optional<std::int64_t> supersedes;      ///< the decision that holds for the same container until now
  bool holds = true;                           ///< false for a denial or an event that is only recorded
  std::string reason_code = {};                ///< the reason in a word, for programs; README.md lists them
  std::optional<std::int64_t> caused_by = {};  ///< the decision because of which this one was made
  std::optional<std::int64_t> setup = {};      ///< with which it was made; none: the one in force at that time
  std::string phases = {};                     ///< compact JSON; README.md gives its shape
  bool conflict = false;                       ///< the CPUs are the kubelet's, although the ledger contradicts that
  std::string devices = {};                    ///< compact JSON; README.md gives its shape
  std::map<std::string, std::string> tags = {};
  std::string memory_cost = {};          ///< compact JSON; README.md gives its shape
  std::string load = {};                 ///< the measurements that it was made by, in the same way; empty: by none
  std::vector<HeldCpus> held_cpus = {};  ///< of one that holds something
};

/// The outcome of a decision. `state`: the runtime's answer (bound, refused, in_doubt, timed_out); crashed: the
/// container failed, what it held is kept for its next attempt; kept: the same of one that ended otherwise.
struct OutcomeRow {
  std::int64_t decision = 0;
  std::int64_t at_ms = 0;
  std::string state;
  std::string container_id;
  int code = 0;  ///< gRPC status code
  std::string message;
  std::string phases = {};  ///< compact JSON; README.md gives its shape
};

/// The end of a decision. `cause`: see the table `ended` in README.md.
struct EndedRow {
  std::int64_t decision = 0;
  std::int64_t at_ms = 0;
  std::uint64_t generation = 0;
  std::string cause;
};

/// The pool that all share, from a generation on.
struct PoolRow {
  std::uint64_t generation = 0;
  std::int64_t at_ms = 0;
  CpuSet pool;
  CpuSet free_reserved = {};
  CpuSet free_isolated = {};
  std::optional<std::int64_t> caused_by =
      {};                  ///< the decision that was made or has ended; none where no decision did it
  std::string cause = {};  ///< "placed", "re-placed", "ended", "left", "machine", "started"
};

/// The CPUs of the containers that run on the whole pool, for all of them. There is one such row.
struct WholePoolRow {
  CpuSet cpus;
  CpuSet vacating;  ///< CPUs that were in the pool, and that some of these containers may not have left yet
  std::uint64_t generation = 0;
};

/// The machine, from a generation on.
struct TopologyRow {
  std::uint64_t generation = 0;
  std::int64_t at_ms = 0;
  CpuSet allowed;
  CpuSet reserved;
  CpuSet isolated;
  /// Where a CPU is: by OS index; none where there is no such thing. `core` and `l3` are the lowest CPU of the core and
  /// of those that share the cache, since the kernel's own numbers repeat from package to package.
  struct Cpu {
    std::uint32_t cpu = 0;
    std::optional<std::uint32_t> node;
    std::optional<std::uint32_t> core;
    std::optional<std::uint32_t> l3;
    std::optional<std::uint32_t> package;
  };
  std::vector<Cpu> cpus;
  struct Node {
    std::uint32_t node = 0;
    CpuSet cpus;
    std::int64_t memory_bytes = 0;
    bool memory_only = false;
  };
  std::vector<Node> nodes;
  struct Device {
    std::string name;
    std::string address;  ///< of its PCI device; empty if it has none
    std::string kind;     ///< README.md lists them
    NodeSet nodes;        ///< those it is local to
  };
  std::vector<Device> devices = {};
};

/// The version, configuration and plugins with which decisions are made, from a generation on.
struct SetupRow {
  std::int64_t setup = 0;  ///< its number, never used before
  std::uint64_t generation = 0;
  std::int64_t at_ms = 0;
  std::string version;      ///< topoletd's
  std::string config_text;  ///< as it is in force; kept once for each digest
  std::string plugins;      ///< compact JSON; README.md gives its shape
};

/// The value of a column.
using Value = std::variant<std::int64_t, std::string>;
/// Columns to be written, by name. The names are the program's own, never input.
using Columns = std::vector<std::pair<std::string, Value>>;

/// The allocation of a decision, as a restarted daemon needs it: all columns of the view `allocation` but the number,
/// by name.
struct AllocationRow {
  std::int64_t decision = 0;
  std::map<std::string, Value> columns;
};

/// A denial, and how often it was repeated.
struct DenialRow {
  std::int64_t decision = 0;
  std::int64_t at_ms = 0;
  std::int64_t last_ms = 0;  ///< of the newest repetition; as at_ms where there is none
  std::uint64_t times = 1;
  std::string pod_uid;
  std::string pod_namespace;
  std::string pod_name;
  std::string container;
  std::string sandbox_id;
  std::string reason_code;
  std::string reason;
  bool is_over = false;  ///< the container was placed since, or its pod is gone
};

/// A pod sandbox: all columns of the table `pod` but the boot, by name.
using PodRow = std::map<std::string, Value>;

/// The capacity reported of a NUMA node: all columns of the table `reported_capacity` but the node, by name.
struct CapacityRow {
  std::uint32_t node = 0;  ///< OS index
  std::map<std::string, Value> columns;
};

/// A size of exclusive containers, as in the table `recent_size`.
struct RecentSizeRow {
  std::uint32_t cpus = 0;
  std::int64_t counted_ms = 0;
};

/// The delay before IntegrityCheck begins, the time that it reads at once, and its pause after that.
struct IntegrityCheckPace {
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds slice{100};
  std::chrono::milliseconds pause{200};
};

class Store;

struct StoreOptions {
  std::filesystem::path directory;  ///< holds state.db, mode 0600
  std::string boot_id;              ///< of the running kernel; live rows of another boot are ended as "reboot" at open
  std::int64_t now_ms = 0;
  Durability durability = Durability::kNormal;
  /// Checks that what is held can be understood; DATA_LOSS: it cannot, and the file is as damaged as any.
  std::function<Status(Store&)> check_rows = {};
  IntegrityCheckPace integrity_check_pace = {};
  RetentionLimits retention = {};
  /// Lets open() make the directory, with mode 0700; otherwise UNAVAILABLE where there is none.
  bool may_make_directory = true;
};

/// The events of opening the store.
struct OpenReport {
  std::filesystem::path set_aside;  ///< where a file went that cannot be gone on with; empty if there was none
  std::string set_aside_because;    ///< the reason
  bool was_too_old = false;         ///< the reason is that its schema is older than the first that is brought forward
  std::uint32_t ended_by_reboot = 0;
  /// The newest generation that was noted in this boot; 0 if none was, or the database has it.
  std::uint64_t newest_lost_generation = 0;
};

/// The fate of a file that is there when the database is opened again.
enum class Leftover : std::uint8_t {
  kKept,      ///< it is the store's own, and written to again
  kReplaced,  ///< it is somebody else's, or has other decisions: it is renamed to state.db.replaced-<ms>
  kDamaged,   ///< it is renamed to state.db.damaged-<ms>
};

/// Why the store cannot write to its file any more, ever.
struct FileLoss {
  std::string what;
  Leftover leftover = Leftover::kKept;
};

/// The newest numbers that were given so far.
struct LastNumbers {
  std::int64_t decision = 0;
  std::uint64_t generation = 0;
};

/// The findings of reading the whole file.
struct IntegrityReport {
  std::string damage;         ///< empty: there is none
  std::uint32_t trees = 0;    ///< tables and indexes that were read
  std::uint64_t entries = 0;  ///< rows of tables and entries of indexes that were read
  std::chrono::milliseconds duration{};
};

/// One moment by both clocks: the wall clock may be set, the other one only goes on.
struct Moment {
  std::int64_t wall_ms = 0;
  std::chrono::steady_clock::time_point steady{};
};

/// The work of one retention pass.
struct RetentionPass {
  bool has_more = false;                  ///< another pass has something to do at once
  std::int64_t rows = 0;                  ///< that it worked on
  std::int64_t deleted = 0;               ///< of these: decisions and pool versions
  std::int64_t deleted_until_ms = 0;      ///< all that is deleted had ended before then; 0 if nothing was deleted
  std::vector<std::string> notices = {};  ///< for people, where there is something unusual about it
};

/// The size of the history.
struct StoreFigures {
  std::int64_t bytes = 0;                               ///< of the file and the log beside it
  std::optional<std::int64_t> oldest_decision_ms = {};  ///< wall clock; none: there is no decision
};

/// One writer, one thread at a time; write_generation_file() and figures() on any. Every call is one transaction of its
/// own unless between begin() and commit(). A call that fails changes nothing and leaves the store usable; between them
/// it rolls the whole transaction back, and the calls after it, commit() included, return the same error until commit()
/// or roll_back() ends it.
class Store {
 public:
  virtual ~Store() = default;

  /// Opens or makes the database and brings its schema forward. A file that is damaged, or whose schema is older than
  /// the first one that is brought forward, is set aside and a new one begun; a schema from a newer topolet, a
  /// directory that cannot be used, or one that another topoletd uses, is an error.
  static Result<std::unique_ptr<Store>> open(const StoreOptions& options);

  /// A database of the same schema in memory, which ends with the store: no directory, no lock, no other reader.
  static Result<std::unique_ptr<Store>> open_in_memory(const std::string& boot_id, std::int64_t now_ms);

  /// A store whose directory cannot be used for now, and `why`: it holds what the file there holds, if that can be
  /// read, takes no writes, and says in find_file_loss() that it has to be opened again.
  static Result<std::unique_ptr<Store>> open_detached(const StoreOptions& options, const Error& why);

  virtual const OpenReport& report() const = 0;

  /// Finds out if the file, or what SQLite keeps beside it, was removed, replaced or cut behind the store's back.
  virtual std::optional<FileLoss> find_file_loss() { return std::nullopt; }
  /// Opens the database in the directory again, or begins a new one. A file that knows greater numbers than `last` is
  /// not gone on with either, as they would be given twice. Returns what a file that was there is called now; empty if
  /// there was none or it is kept. A directory that was there once is not made again. After an error the store takes no
  /// writes until this succeeds.
  virtual Result<std::filesystem::path> reopen(const FileLoss& loss, const LastNumbers& last, std::int64_t now_ms);
  /// `reopened` runs after each reopen() that succeeds, on the same thread. To be set before the first.
  virtual void on_reopened(std::function<void()> reopened) { static_cast<void>(reopened); }
  /// Decisions get higher numbers than `last` from now on.
  virtual Status skip_decisions(std::int64_t last) = 0;

  virtual Status begin() = 0;
  virtual Status commit() = 0;
  virtual void roll_back() = 0;
  /// Runs `work` in a savepoint of the open transaction: an error that it returns undoes what it did and leaves the
  /// rest of the transaction, unless the database has ended all of it because of the error.
  virtual Status savepoint(const std::function<Status()>& work) = 0;

  /// Returns the decision's number. Ends `supersedes` with cause "superseded"; NOT_FOUND if that holds nothing.
  virtual Result<std::int64_t> add(const DecidedRow& row) = 0;
  /// Adds an outcome. That of a decision that holds nothing any more is audited all the same; NOT_FOUND if there is no
  /// such decision.
  virtual Status add(const OutcomeRow& row) = 0;
  /// Ends a decision, which holds nothing from then on; NOT_FOUND if it held nothing before.
  virtual Status add(const EndedRow& row) = 0;
  /// Sets the allocation of a decision, from now on until it is ended or superseded; in the place of the one before.
  virtual Status put_allocation(std::int64_t decision, const Columns& columns) = 0;
  /// Changes some columns of that. NOT_FOUND if the decision holds nothing.
  virtual Status update_allocation(std::int64_t decision, const Columns& columns) = 0;
  /// Counts one more identical denial on an earlier one instead of a new row.
  virtual Status count_repeat(std::int64_t decision, std::int64_t at_ms) = 0;
  /// Records the shared pool as it is from a generation on. ALREADY_EXISTS if that generation has another pool.
  virtual Status add(const PoolRow& row) = 0;
  /// Sets the CPUs of all allocations whose rows share these, in the place of those before.
  virtual Status put_whole_pool(const WholePoolRow& row) = 0;
  /// Records the machine, unless it is as it was recorded last in this boot.
  virtual Status add(const TopologyRow& row) = 0;
  /// Records a setup, unless one of that number was recorded before.
  virtual Status add(const SetupRow& row) = 0;
  /// Records the generation that the ledger has with what is written. Not every one has a row that tells of it.
  virtual Status set_generation(std::uint64_t generation) = 0;

  /// Sets the row of a pod, in the place of the one before. `columns` has a "sandbox_id".
  virtual Status put_pod(const Columns& columns) = 0;
  virtual Status remove_pod(const std::string& sandbox_id) = 0;

  /// Sets the capacity reported of a NUMA node, in the place of the one before. It outlives a reboot.
  virtual Status put_capacity(std::uint32_t node, const Columns& columns) = 0;
  virtual Status remove_capacity(std::uint32_t node) = 0;

  /// Sets all sizes of exclusive containers that are remembered, in the place of those before. They outlive a reboot.
  virtual Status put_recent_sizes(const std::vector<RecentSizeRow>& rows) = 0;

  virtual Result<std::vector<AllocationRow>> allocations() = 0;
  virtual Result<std::vector<PodRow>> pods() = 0;
  virtual Result<std::vector<CapacityRow>> capacities() = 0;
  virtual Result<std::vector<RecentSizeRow>> recent_sizes() = 0;
  /// The highest generation ever written; 0 for a new database.
  virtual Result<std::uint64_t> last_generation() = 0;
  /// The highest number ever given to a decision; 0 for a new database.
  virtual Result<std::int64_t> last_decision() = 0;
  /// The CPUs that topolet might use of the machine as it was recorded last in this boot; nothing if it was not.
  virtual Result<std::optional<CpuSet>> last_allowed() = 0;
  /// The reason code of the newest decision with this event that is about no container; empty if there is none.
  virtual Result<std::string> last_reason_code(const std::string& event) = 0;
  /// The denials that were made or repeated since then, the oldest first.
  virtual Result<std::vector<DenialRow>> recent_denials(std::int64_t since_ms) {
    static_cast<void>(since_ms);
    return std::vector<DenialRow>();
  }
  /// The highest number ever given to a setup; 0 for a new database.
  virtual Result<std::int64_t> last_setup() = 0;
  /// Does some of the work on the history while nobody waits, on about so many rows: deletes what is older than it is
  /// kept, and shrinks the file.
  virtual Result<RetentionPass> run_retention_pass(const Moment& now, std::int64_t rows) = 0;
  /// The figures as of the newest run_retention_pass() that looked, some seconds ago at most where it is run; none: it
  /// never did, or there is no file. Waits for no disk. Any thread.
  virtual std::optional<StoreFigures> figures() const { return std::nullopt; }
  /// Notes, outside of the database, that this generation was acted on, so that a database which lacks it is noticed
  /// when it is opened next. Not synced to the disk. Any thread; the highest counts.
  virtual void write_generation_file(std::uint64_t generation) = 0;
  /// The same, but it is done soon, and by another thread: returns at once whatever the file system does. Any thread.
  virtual void note_generation(std::uint64_t generation) = 0;

  /// Reads the whole file for damage, slowly and beside whoever uses it, as a start reads only what it needs. A damaged
  /// file is marked, so that the next start sets it aside. Begins again with each reopen(). `report` runs on a thread
  /// of the check's own, when it is done. To be called before another thread uses the store.
  virtual void check_integrity(std::function<void(const IntegrityReport&)> report) { static_cast<void>(report); }
};

}  // namespace topolet::store
