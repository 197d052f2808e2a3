#include "store/log_vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace topolet::store {
namespace {

constexpr int kLogHeaderBytes = 32;
constexpr int kFrameHeaderBytes = 24;
/// A longer transaction is written in several parts.
constexpr std::size_t kMaxBuffered = std::size_t{1} << 20U;
/// SQLite's own VFS takes less than 128 KiB at a time.
constexpr std::size_t kMaxWrite = std::size_t{1} << 16U;

/// Tells if a frame is the last one of a transaction: only there are bytes 4 to 7 of its header not 0.
bool ends_transaction(const unsigned char* frame_header) {
  return std::any_of(frame_header + 4, frame_header + 8, [](unsigned char byte) { return byte != 0; });
}

/// The bytes that are appended to the log and not written yet.
class Appended {
 public:
  /// As xWrite of sqlite3_io_methods.
  int write(sqlite3_file* file, const unsigned char* bytes, int size, sqlite3_int64 offset) {
    if (!bytes_.empty() && offset == begin_ + static_cast<sqlite3_int64>(bytes_.size())) {
      return append(file, bytes, size);
    }
    if (const int flushed = flush(file); flushed != SQLITE_OK) return flushed;
    const bool begins_log = offset == 0 && size == kLogHeaderBytes;
    // A header that lies before the end is written anew, with no page behind it.
    const bool begins_frame = offset == end_ && size == kFrameHeaderBytes;
    if (begins_log) end_ = 0;
    if (begins_log || begins_frame) {
      begin_ = offset;
      return append(file, bytes, size);
    }
    end_ = std::max(end_, offset + size);
    return file->pMethods->xWrite(file, bytes, size, offset);
  }

  int flush(sqlite3_file* file) {
    int written = SQLITE_OK;
    for (std::size_t done = 0; done < bytes_.size() && written == SQLITE_OK; done += kMaxWrite) {
      const std::size_t size = std::min(kMaxWrite, bytes_.size() - done);
      written = file->pMethods->xWrite(file, bytes_.data() + done, static_cast<int>(size),
                                       begin_ + static_cast<sqlite3_int64>(done));
    }
    end_ = std::max(end_, begin_ + static_cast<sqlite3_int64>(bytes_.size()));
    drop();
    return written;
  }

  void drop() {
    bytes_.clear();
    last_frame_ = false;
  }

 private:
  int append(sqlite3_file* file, const unsigned char* bytes, int size) {
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    if (size == kFrameHeaderBytes) {
      last_frame_ = ends_transaction(bytes);
      return SQLITE_OK;
    }
    return last_frame_ || bytes_.size() >= kMaxBuffered ? flush(file) : SQLITE_OK;
  }

  std::vector<unsigned char> bytes_;
  sqlite3_int64 begin_ = 0;  ///< where the first of them belongs
  sqlite3_int64 end_ = 0;    ///< of what was written or appended since the log began anew, as far as this has seen it
  bool last_frame_ = false;  ///< the page that comes next ends the transaction
};

/// SQLite gives the memory for it; the file of SQLite's own VFS follows it there.
struct LogFile {
  sqlite3_file base;
  Appended* appended;
};

sqlite3_vfs* sqlite_vfs() { return sqlite3_vfs_find(nullptr); }

// SQLite's interface: all its files are sqlite3_file, of which a VFS makes what it likes.
LogFile* log_of(sqlite3_file* file) { return reinterpret_cast<LogFile*>(file); }
sqlite3_file* inner_of(sqlite3_file* file) { return reinterpret_cast<sqlite3_file*>(log_of(file) + 1); }

int flush(sqlite3_file* file) { return log_of(file)->appended->flush(inner_of(file)); }

int close_log(sqlite3_file* file) {
  // The bytes that are left do not belong to a transaction.
  delete log_of(file)->appended;
  return inner_of(file)->pMethods->xClose(inner_of(file));
}

int write_log(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) try {
  return log_of(file)->appended->write(inner_of(file), static_cast<const unsigned char*>(bytes), size, offset);
} catch (const std::bad_alloc&) {
  log_of(file)->appended->drop();
  return SQLITE_IOERR_NOMEM;
}

int read_log(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) return flushed;
  return inner_of(file)->pMethods->xRead(inner_of(file), into, size, offset);
}

int truncate_log(sqlite3_file* file, sqlite3_int64 size) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) return flushed;
  return inner_of(file)->pMethods->xTruncate(inner_of(file), size);
}

int sync_log(sqlite3_file* file, int flags) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) return flushed;
  return inner_of(file)->pMethods->xSync(inner_of(file), flags);
}

int log_size(sqlite3_file* file, sqlite3_int64* size) {
  if (const int flushed = flush(file); flushed != SQLITE_OK) return flushed;
  return inner_of(file)->pMethods->xFileSize(inner_of(file), size);
}

int lock_log(sqlite3_file* file, int lock) { return inner_of(file)->pMethods->xLock(inner_of(file), lock); }
int unlock_log(sqlite3_file* file, int lock) { return inner_of(file)->pMethods->xUnlock(inner_of(file), lock); }
int check_log_lock(sqlite3_file* file, int* held) {
  return inner_of(file)->pMethods->xCheckReservedLock(inner_of(file), held);
}
int control_log(sqlite3_file* file, int operation, void* argument) {
  return inner_of(file)->pMethods->xFileControl(inner_of(file), operation, argument);
}
int log_sector_size(sqlite3_file* file) { return inner_of(file)->pMethods->xSectorSize(inner_of(file)); }
int log_characteristics(sqlite3_file* file) { return inner_of(file)->pMethods->xDeviceCharacteristics(inner_of(file)); }

// Version 1: a log is neither mapped nor shared memory.
constexpr sqlite3_io_methods kLogMethods = {
    1,          close_log,      read_log,    write_log,       truncate_log,        sync_log, log_size, lock_log,
    unlock_log, check_log_lock, control_log, log_sector_size, log_characteristics, nullptr,  nullptr,  nullptr,
    nullptr,    nullptr,        nullptr};

int open_log(const char* name, sqlite3_file* file, int flags, int* opened_with) {
  auto* const appended = new (std::nothrow) Appended;
  if (appended == nullptr) return SQLITE_NOMEM;
  sqlite3_vfs* const vfs = sqlite_vfs();
  const int opened = vfs->xOpen(vfs, name, inner_of(file), flags, opened_with);
  if (opened != SQLITE_OK) {
    delete appended;
    return opened;
  }
  *log_of(file) = {{&kLogMethods}, appended};
  return SQLITE_OK;
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* opened_with) {
  // SQLite closes what has methods, opened or not.
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_WAL) != 0) return open_log(name, file, flags, opened_with);
  return sqlite_vfs()->xOpen(sqlite_vfs(), name, file, flags, opened_with);
}

const char* register_vfs() {
  const sqlite3_vfs* const own = sqlite_vfs();
  if (own == nullptr) return nullptr;
  static sqlite3_vfs vfs = *own;
  vfs.zName = "topolet-log";
  vfs.pNext = nullptr;
  vfs.szOsFile = own->szOsFile + static_cast<int>(sizeof(LogFile));
  vfs.xOpen = open_file;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK ? vfs.zName : nullptr;
}

}  // namespace

const char* log_vfs() {
  static const char* const name = register_vfs();
  return name;
}

void drop_on_rollback(sqlite3* connection) {
  sqlite3_rollback_hook(
      connection,
      [](void* rolled_back) {
        sqlite3_file* log = nullptr;
        sqlite3_file_control(static_cast<sqlite3*>(rolled_back), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
        if (log != nullptr && log->pMethods == &kLogMethods) log_of(log)->appended->drop();
      },
      connection);
}

}  // namespace topolet::store
