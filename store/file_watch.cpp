#include "store/file_watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace topolet::store {

FileWatch::FileWatch(std::filesystem::path database)
    : database_(std::move(database)), log_files_{database_.string() + "-wal", database_.string() + "-shm"} {
  seen_ = see(database_);
  for (std::size_t i = 0; i < log_files_.size(); ++i) log_files_seen_[i] = see(log_files_[i]);
}

std::optional<FileWatch::Seen> FileWatch::see(const std::filesystem::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return Seen{{status.st_dev, status.st_ino}, status.st_size};
}

std::optional<FileLoss> FileWatch::look(const std::function<std::int64_t()>& needed_size) {
  const std::optional<Seen> now = see(database_);
  if (!now) return FileLoss{fmt::format("'{}' was removed", database_.string()), Leftover::kReplaced};
  if (!seen_ || now->identity != seen_->identity) {
    return FileLoss{fmt::format("'{}' was replaced by another file", database_.string()), Leftover::kReplaced};
  }
  if (now->size < seen_->size && now->size < needed_size()) {
    return FileLoss{fmt::format("'{}' was cut to {} bytes", database_.string(), now->size), Leftover::kDamaged};
  }
  seen_ = now;
  for (std::size_t i = 0; i < log_files_.size(); ++i) {
    const std::optional<Seen> log = see(log_files_[i]);
    if (!log_files_seen_[i] || (log && log->identity == log_files_seen_[i]->identity)) continue;
    return FileLoss{fmt::format("'{}' was {}", log_files_[i].string(), log ? "replaced by another file" : "removed"),
                    Leftover::kKept};
  }
  return std::nullopt;
}

}  // namespace topolet::store
