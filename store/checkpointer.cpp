#include "store/checkpointer.hpp"

#include <pthread.h>

#include <utility>

namespace topolet::store {
namespace {

/// 4 MiB: the length at which SQLite itself makes a checkpoint.
constexpr int kCheckpointAtPages = 1000;
/// 32 MiB. In a log that is written all the time no checkpoint reaches the end, from where it could begin anew: then
/// the writer has to wait once.
constexpr int kCheckpointAtOncePages = 8000;

}  // namespace

std::unique_ptr<Checkpointer> Checkpointer::start(Database& writer) {
  auto own = Database::open(writer.path(), Database::Access::kReadWrite);
  if (!own) return nullptr;
  // A connection opens the log with its first read. Before that, a checkpoint does nothing, and says that all is well.
  if (!own->integer("SELECT count(*) FROM sqlite_schema", "open the log")) return nullptr;
  return std::unique_ptr<Checkpointer>(new Checkpointer(writer, *std::move(own)));
}

Checkpointer::Checkpointer(Database& writer, Database own) : writer_(writer), own_(std::move(own)) {
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "topolet-checkpt");
  writer_.on_log_written([this](int pages) { on_log_written(pages); });
}

Checkpointer::~Checkpointer() {
  writer_.on_log_written([](int) {});
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  thread_.join();
}

void Checkpointer::on_log_written(int pages) {
  if (pages < kCheckpointAtPages) return;
  const bool at_once = pages >= kCheckpointAtOncePages;
  {
    MutexLock lock(mutex_);
    // SQLite lets only one of them make a checkpoint. The thread does not begin anew, so that a later commit finds
    // nobody at it.
    wanted_ = !at_once;
    if (at_once && is_at_work_) return;
    is_at_work_ = is_at_work_ || at_once;
  }
  if (at_once) {
    writer_.checkpoint();
    MutexLock lock(mutex_);
    is_at_work_ = false;
  } else {
    wake_up_.notify_one();
  }
}

/// Whatever fails, on a full disk for example, is tried again at the next commit.
void Checkpointer::run() {
  while (true) {
    {
      MutexLock lock(mutex_);
      while (!wanted_ && !stopping_) wake_up_.wait(mutex_);
      if (stopping_) return;
      wanted_ = false;
      is_at_work_ = true;
    }
    own_.checkpoint();
    MutexLock lock(mutex_);
    is_at_work_ = false;
  }
}

}  // namespace topolet::store
