#include "store/plugin_state_table.hpp"

#include <pthread.h>

#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "store/database.hpp"

namespace topolet::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long a plugin waits until its value is written.
constexpr milliseconds kPatience{20};
constexpr milliseconds kRetry{1000};
constexpr milliseconds kLongestEnd{5000};
/// The most that may wait to be written.
constexpr std::size_t kMaxPendingBytes = std::size_t{16} << 20U;

struct Name {
  std::string plugin;
  std::string key;
  friend auto operator<=>(const Name&, const Name&) = default;
};

/// None: the key is removed.
using PluginValue = std::optional<std::string>;

std::size_t size_of(const Name& name, const PluginValue& value) {
  return name.plugin.size() + name.key.size() + (value ? value->size() : 0);
}

/// For one thread at a time.
struct Connection {
  Database database;
  Statement get;
  Statement next;
  Statement count;
  Statement set;
  Statement add;
  Statement remove;
  Statement all;

  static Result<std::unique_ptr<Connection>> open(const std::filesystem::path& file, Database::Access access) {
    auto opened = Database::open(file, access);
    if (!opened) return opened.error();
    auto connection = std::make_unique<Connection>();
    connection->database = *std::move(opened);
    // The Store writes between a plugin's calls, never for long.
    Status set = connection->database.execute("PRAGMA busy_timeout = 200; PRAGMA synchronous = NORMAL", "set up");
    if (!set) return set.error();
    const struct {
      Statement& into;
      const char* sql;
      const char* purpose;
    } texts[] = {
        {connection->get, "SELECT value FROM plugin_state WHERE plugin = ?1 AND key = CAST(?2 AS BLOB)",
         "read a plugin's state"},
        {connection->next,
         "SELECT key FROM plugin_state WHERE plugin = ?1 AND key > CAST(?2 AS BLOB) ORDER BY key LIMIT 1",
         "walk a plugin's state"},
        {connection->count, "SELECT count(*) FROM plugin_state WHERE plugin = ?1", "count a plugin's keys"},
        {connection->set,
         "INSERT INTO plugin_state (plugin, key, value) VALUES (?1, CAST(?2 AS BLOB), CAST(?3 AS BLOB)) "
         "ON CONFLICT (plugin, key) DO UPDATE SET value = excluded.value",
         "keep a plugin's state"},
        {connection->add,
         "INSERT OR IGNORE INTO plugin_state (plugin, key, value) VALUES (?1, CAST(?2 AS BLOB), CAST(?3 AS BLOB))",
         "take a plugin's state over"},
        {connection->remove, "DELETE FROM plugin_state WHERE plugin = ?1 AND key = CAST(?2 AS BLOB)",
         "forget a plugin's state"},
        {connection->all, "SELECT plugin, key, value FROM plugin_state", "read the plugins' state"},
    };
    for (const auto& text : texts) {
      auto statement = connection->database.prepare(text.sql, text.purpose);
      if (!statement) return statement.error();
      text.into = *std::move(statement);
    }
    // With its first read it opens the log: from then on it can be read whatever becomes of the names of the files.
    if (const auto read = connection->count.first_integer(std::string()); !read) return read.error();
    return connection;
  }
};

}  // namespace

class PluginStateTable::Values {
 public:
  explicit Values(std::filesystem::path file) : file_(std::move(file)) {
    if (auto writing = Connection::open(file_, Database::Access::kReadWrite)) writing_ = *std::move(writing);
    MutexLock lock(read_mutex_);
    for (const auto access : {Database::Access::kReadOnly, Database::Access::kImmutable}) {
      if (reading_) return;
      if (auto reading = Connection::open(file_, access)) reading_ = *std::move(reading);
    }
  }

  Result<std::optional<std::string>> get(const Name& name) {
    {
      MutexLock lock(mutex_);
      if (const auto pending = pending_.find(name); pending != pending_.end()) return pending->second.value;
    }
    MutexLock lock(read_mutex_);
    if (!reading_) return std::optional<std::string>();
    return reading_->get.first_text(name.plugin, name.key);
  }

  Result<std::optional<std::string>> next(const Name& after) {
    std::optional<std::string> written = after.key;
    while (true) {
      auto read = next_written({after.plugin, *written});
      if (!read) return read;
      written = *std::move(read);
      if (!written || !is_removed({after.plugin, *written})) break;
    }
    std::optional<std::string> waiting = next_pending(after);
    if (!waiting || (written && *written < *waiting)) return written;
    return waiting;
  }

  Result<std::size_t> count(const std::string& plugin) {
    std::vector<std::pair<Name, bool>> waiting;
    {
      MutexLock lock(mutex_);
      for (auto it = pending_.lower_bound({plugin, {}}); it != pending_.end() && it->first.plugin == plugin; ++it) {
        waiting.emplace_back(it->first, it->second.value.has_value());
      }
    }
    MutexLock lock(read_mutex_);
    std::int64_t count = 0;
    if (reading_) {
      const auto counted = reading_->count.first_integer(plugin);
      if (!counted) return counted.error();
      count = counted->value_or(0);
    }
    for (const auto& [name, is_set] : waiting) {
      bool is_written = false;
      if (reading_) {
        const auto found = reading_->get.first_text(name.plugin, name.key);
        is_written = found && *found;
      }
      count += static_cast<int>(is_set) - static_cast<int>(is_written);
    }
    return static_cast<std::size_t>(count);
  }

  Status put(const Name& name, PluginValue value) {
    const auto until = steady_clock::now() + kPatience;
    MutexLock lock(mutex_);
    const std::size_t size = size_of(name, value);
    if (pending_bytes_ + size > kMaxPendingBytes) {
      return Error{Code::kResourceExhausted, "the state database takes no writes, and too many values wait for it"};
    }
    if (const auto before = pending_.find(name); before != pending_.end()) {
      pending_bytes_ -= size_of(name, before->second.value);
    }
    pending_bytes_ += size;
    const std::uint64_t number = ++last_number_;
    pending_[name] = {std::move(value), number};
    changed_.notify_all();
    while (is_pending(name, number) && changed_.wait_until(mutex_, until)) {
    }
    return {};
  }

  void reopen() {
    MutexLock lock(mutex_);
    must_reopen_ = true;
    changed_.notify_all();
  }

  void run() {
    while (wait_for_work()) {
      if (write()) continue;
      if (!wait_before_retry()) break;
    }
    static_cast<void>(write());
    writing_.reset();
    {
      MutexLock lock(read_mutex_);
      reading_.reset();
    }
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  /// False if the thread does not end.
  bool stop() {
    const auto until = steady_clock::now() + kLongestEnd;
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    while (!ended_) {
      if (!changed_.wait_until(mutex_, until)) return ended_;
    }
    return true;
  }

 private:
  struct Pending {
    PluginValue value;
    std::uint64_t number = 0;
  };

  Result<std::optional<std::string>> next_written(const Name& after) {
    MutexLock lock(read_mutex_);
    if (!reading_) return std::optional<std::string>();
    return reading_->next.first_text(after.plugin, after.key);
  }
  bool is_removed(const Name& name) {
    MutexLock lock(mutex_);
    const auto pending = pending_.find(name);
    return pending != pending_.end() && !pending->second.value;
  }
  std::optional<std::string> next_pending(const Name& after) {
    MutexLock lock(mutex_);
    for (auto it = pending_.upper_bound(after); it != pending_.end() && it->first.plugin == after.plugin; ++it) {
      if (it->second.value) return it->first.key;
    }
    return std::nullopt;
  }

  bool is_pending(const Name& name, std::uint64_t number) const TOPOLET_REQUIRES(mutex_) {
    const auto found = pending_.find(name);
    return found != pending_.end() && found->second.number == number;
  }

  bool wait_for_work() {
    MutexLock lock(mutex_);
    while ((pending_.empty() || !writing_) && !must_reopen_ && !stopping_) changed_.wait(mutex_);
    return !stopping_;
  }
  bool wait_before_retry() {
    const auto until = steady_clock::now() + kRetry;
    MutexLock lock(mutex_);
    while (!stopping_ && changed_.wait_until(mutex_, until)) {
    }
    return !stopping_;
  }

  bool write() {
    std::map<Name, Pending> taken;
    bool reopens = false;
    {
      MutexLock lock(mutex_);
      reopens = std::exchange(must_reopen_, false);
    }
    if (reopens && !take_over()) {
      MutexLock lock(mutex_);
      must_reopen_ = true;
      return false;
    }
    {
      MutexLock lock(mutex_);
      taken = pending_;
    }
    if (taken.empty()) return true;
    if (!writing_ || !write_all(*writing_, taken)) return false;
    MutexLock lock(mutex_);
    for (const auto& [name, written] : taken) {
      const auto found = pending_.find(name);
      if (found == pending_.end() || found->second.number != written.number) continue;
      pending_bytes_ -= size_of(name, written.value);
      pending_.erase(found);
    }
    changed_.notify_all();
    return true;
  }

  static bool write_all(Connection& connection, const std::map<Name, Pending>& values) {
    if (!connection.database.execute("BEGIN IMMEDIATE", "begin")) return false;
    Status written;
    for (const auto& [name, pending] : values) {
      if (!written) break;
      written = pending.value ? connection.set.run(name.plugin, name.key, *pending.value)
                              : connection.remove.run(name.plugin, name.key);
    }
    return end_transaction(connection, written);
  }

  static bool end_transaction(Connection& connection, Status written) {
    if (written) written = connection.database.execute("COMMIT", "commit");
    if (!written && connection.database.in_transaction()) {
      static_cast<void>(connection.database.execute("ROLLBACK", "roll back"));
    }
    return written.has_value();
  }

  /// Puts what can be read of the old file into the new one.
  bool take_over() {
    auto writing = Connection::open(file_, Database::Access::kReadWrite);
    auto reading = Connection::open(file_, Database::Access::kReadOnly);
    if (!writing || !reading) return false;
    MutexLock lock(read_mutex_);
    if (reading_) {
      if (!(*writing)->database.execute("BEGIN IMMEDIATE", "begin")) return false;
      Status taken;
      reading_->all.reset();
      // A damaged one gives what it has before the damage.
      for (auto more = reading_->all.next(); taken && more && *more; more = reading_->all.next()) {
        taken = (*writing)->add.run(reading_->all.text(0), reading_->all.text(1), reading_->all.text(2));
      }
      reading_->all.reset();
      if (!end_transaction(**writing, taken)) return false;
    }
    writing_ = *std::move(writing);
    reading_ = *std::move(reading);
    return true;
  }

  const std::filesystem::path file_;
  std::unique_ptr<Connection> writing_;  ///< the thread's; null until there is a file

  Mutex read_mutex_;
  std::unique_ptr<Connection> reading_ TOPOLET_GUARDED_BY(read_mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<Name, Pending> pending_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t pending_bytes_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_number_ TOPOLET_GUARDED_BY(mutex_) = 0;
  bool must_reopen_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool ended_ TOPOLET_GUARDED_BY(mutex_) = false;
};

PluginStateTable::PluginStateTable(const std::filesystem::path& state_directory)
    : values_(std::make_shared<Values>(state_directory / "state.db")) {
  std::thread thread([values = values_] { values->run(); });
  ::pthread_setname_np(thread.native_handle(), "topolet-values");
  thread.detach();
}

PluginStateTable::~PluginStateTable() { static_cast<void>(values_->stop()); }

void PluginStateTable::reopen() { values_->reopen(); }

Result<std::optional<std::string>> PluginStateTable::get(const std::string& plugin, const std::string& key) {
  return values_->get({plugin, key});
}

Result<std::optional<std::string>> PluginStateTable::next(const std::string& plugin, const std::string& after) {
  return values_->next({plugin, after});
}

Result<std::size_t> PluginStateTable::count(const std::string& plugin) { return values_->count(plugin); }

Status PluginStateTable::set(const std::string& plugin, const std::string& key, const std::string& value) {
  return values_->put({plugin, key}, value);
}

Status PluginStateTable::remove(const std::string& plugin, const std::string& key) {
  return values_->put({plugin, key}, std::nullopt);
}

}  // namespace topolet::store
