#include "store/log_folder.hpp"

#include <pthread.h>

#include <utility>

namespace topolet::store {
namespace {

/// 4 MiB: what SQLite itself folds at.
constexpr int kFoldAtPages = 1000;
/// 32 MiB. A log that is being written all the time is never folded to its end, from where it could begin anew: then
/// the writer has to wait once.
constexpr int kFoldAtOncePages = 8000;

}  // namespace

std::unique_ptr<LogFolder> LogFolder::start(Database& writer) {
  auto own = Database::open(writer.path(), Database::Access::kReadWrite);
  if (!own) return nullptr;
  // A connection opens the log with its first read. Before that, to fold it does nothing, and says that all is well.
  if (!own->integer("SELECT count(*) FROM sqlite_schema", "open the log")) return nullptr;
  return std::unique_ptr<LogFolder>(new LogFolder(writer, *std::move(own)));
}

LogFolder::LogFolder(Database& writer, Database own) : writer_(writer), own_(std::move(own)) {
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "topolet-fold");
  writer_.on_log_written([this](int pages) { on_log_written(pages); });
}

LogFolder::~LogFolder() {
  writer_.on_log_written([](int) {});
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  thread_.join();
}

void LogFolder::on_log_written(int pages) {
  if (pages < kFoldAtPages) return;
  const bool at_once = pages >= kFoldAtOncePages;
  {
    MutexLock lock(mutex_);
    // SQLite lets only one of them fold. The thread does not begin anew, so that a later commit finds nobody at it.
    wanted_ = !at_once;
    if (at_once && folding_) return;
    folding_ = folding_ || at_once;
  }
  if (at_once) {
    writer_.fold_log();
    MutexLock lock(mutex_);
    folding_ = false;
  } else {
    wake_up_.notify_one();
  }
}

/// What fails, on a full disk for example, is tried again at the next commit.
void LogFolder::run() {
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!wanted_ && !stopping_) wake_up_.wait(mutex_);
      if (stopping_) return;
      wanted_ = false;
      folding_ = true;
    }
    own_.fold_log();
    MutexLock lock(mutex_);
    folding_ = false;
  }
}

}  // namespace topolet::store
