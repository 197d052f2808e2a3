#include "store/plugin_state_table.hpp"

#include <utility>

#include "store/database.hpp"

namespace topolet::store {

/// Guarded by the mutex of its owner.
struct PluginStateTable::Connection {
  Database database;
  Statement get;
  Statement next;
  Statement count;
  Statement set;
  Statement remove;
};

PluginStateTable::PluginStateTable(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

PluginStateTable::~PluginStateTable() = default;

Result<std::unique_ptr<PluginStateTable>> PluginStateTable::open(const std::filesystem::path& state_directory) {
  auto database = Database::open(state_directory / "state.db", Database::Access::kReadWrite);
  if (!database) return database.error();
  // The Store writes between a plugin's calls, never for long.
  if (Status set = database->execute("PRAGMA busy_timeout = 200; PRAGMA synchronous = NORMAL", "set up"); !set) {
    return set.error();
  }
  auto get = database->prepare("SELECT value FROM plugin_state WHERE plugin = ?1 AND key = CAST(?2 AS BLOB)",
                               "read a plugin's state");
  auto next = database->prepare(
      "SELECT key FROM plugin_state WHERE plugin = ?1 AND key > CAST(?2 AS BLOB) ORDER BY key LIMIT 1",
      "walk a plugin's state");
  auto count = database->prepare("SELECT count(*) FROM plugin_state WHERE plugin = ?1", "count a plugin's keys");
  auto set = database->prepare(
      "INSERT INTO plugin_state (plugin, key, value) VALUES (?1, CAST(?2 AS BLOB), CAST(?3 AS BLOB)) "
      "ON CONFLICT (plugin, key) DO UPDATE SET value = excluded.value",
      "keep a plugin's state");
  auto remove = database->prepare("DELETE FROM plugin_state WHERE plugin = ?1 AND key = CAST(?2 AS BLOB)",
                                  "forget a plugin's state");
  for (const auto* statement : {&get, &next, &count, &set, &remove}) {
    if (!*statement) return statement->error();
  }
  return std::unique_ptr<PluginStateTable>(new PluginStateTable(
      std::make_unique<Connection>(Connection{*std::move(database), *std::move(get), *std::move(next),
                                              *std::move(count), *std::move(set), *std::move(remove)})));
}

Result<std::optional<std::string>> PluginStateTable::get(const std::string& plugin, const std::string& key) {
  MutexLock lock(mutex_);
  return connection_->get.first_text(plugin, key);
}

Result<std::optional<std::string>> PluginStateTable::next(const std::string& plugin, const std::string& after) {
  MutexLock lock(mutex_);
  return connection_->next.first_text(plugin, after);
}

Result<std::size_t> PluginStateTable::count(const std::string& plugin) {
  MutexLock lock(mutex_);
  const auto counted = connection_->count.first_integer(plugin);
  if (!counted) return counted.error();
  return static_cast<std::size_t>(counted->value_or(0));
}

Status PluginStateTable::set(const std::string& plugin, const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  return connection_->set.run(plugin, key, value);
}

Status PluginStateTable::remove(const std::string& plugin, const std::string& key) {
  MutexLock lock(mutex_);
  return connection_->remove.run(plugin, key);
}

}  // namespace topolet::store
