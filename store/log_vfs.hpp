// How SQLite writes its write-ahead log: a transaction at a time.
#pragma once

struct sqlite3;

namespace topolet::store {

/// The name of a VFS for sqlite3_open_v2(), registered by the first call: SQLite's own, but what a transaction appends
/// to the write-ahead log goes there in one write instead of two for every page. Null if it cannot be registered.
///
/// Nothing is held back beyond the transaction: its last frame, which the log's format marks (SQLite, "WAL-mode File
/// Format"), is written before SQLite is told that it is, and with it all before. An error of the write is the
/// transaction's.
///
/// A connection that was opened with it must be given to drop_on_rollback().
const char* log_vfs();

/// Drops what SQLite had put into the log of a transaction before it was rolled back, as it does when its cache is
/// full: another connection may have written there since.
void drop_on_rollback(sqlite3* connection);

}  // namespace topolet::store
