// Keeps clients from filling the memory, and from having the I/O thread for themselves.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/unique_fd.hpp"
#include "core/cri/socket/connections.hpp"
#include "core/cri/socket/memory_claims.hpp"
#include "core/cri/wire/heap_trimmer.hpp"

namespace topolet::cri {

/// Looks at the memory every 5 ms while bytes arrive. While there is more in use than allowed, ends connections: those
/// that take up most, as their clients send requests that they do not complete, have many calls under way or do not
/// read the answers. It ends as many as hold what is too much, and waits a moment for the effect. A connection that has
/// sent nothing since its last complete request, and reads, is never ended. Where another guard of the process has a
/// heavier one, that goes first (memory_claims.hpp).
///
/// Besides, it has the connections that send more than gRPC can work through take turns, see client_reads.hpp.
///
/// For one thread.
class MemoryGuard {
 public:
  using OnMemoryShort = std::function<void(bool is_short)>;
  struct Actions {
    std::function<void(int duplicate_fd)> disconnect;  ///< and remove it from the connections
    OnMemoryShort on_memory_short;  ///< is told when three quarters of the memory become used, and when not any more
  };

  /// `connections` is the caller's, on the same thread. `claims`: what all guards of the process share.
  MemoryGuard(std::size_t max_bytes, Connections& connections, Actions actions, std::shared_ptr<MemoryClaims> claims,
              Log& log);
  ~MemoryGuard();
  MemoryGuard(const MemoryGuard&) = delete;
  MemoryGuard& operator=(const MemoryGuard&) = delete;

  /// To be polled; readable when run() has something to do.
  int event_fd() const { return event_.get(); }
  /// To be called when event_fd() is readable, and after wait_ms() at the latest.
  void run();
  int wait_ms() const;

 private:
  using Clock = std::chrono::steady_clock;

  void give_turns();
  void check_memory();
  void note_limit(std::size_t bytes);
  void tell_claim(std::size_t bytes);
  void end_heaviest(std::size_t bytes, std::size_t awaited_requests);
  void end(int fd, const char* because);
  void tell_whether_short(std::size_t bytes);
  std::size_t bytes_being_freed() const;
  std::size_t bytes_freed_lately();
  void log_ended();
  bool trim(std::size_t bytes);

  const std::size_t max_bytes_;
  Connections& connections_;
  const Actions actions_;
  const std::shared_ptr<MemoryClaims> claims_;
  Log& log_;
  UniqueFd event_;
  HeapTrimmer heap_trimmer_;

  Clock::time_point next_check_{};
  std::uint64_t seen_bytes_ = 0;  ///< all that was read when the memory was looked at
  bool over_ = false;
  Clock::time_point next_warning_{};
  bool short_ = false;
  struct Freed {
    std::size_t bytes = 0;
    std::weak_ptr<const ClientCalls> calls = {};
    Clock::time_point since{};
  };
  std::vector<Freed> freed_;  ///< what the connections had that were ended lately
  Clock::time_point next_trim_{};

  std::optional<int> in_turn_;  ///< the connection that was resumed last
  std::uint64_t turns_before_ = 0;
  Clock::time_point resumed_at_{};
  bool some_wait_ = false;

  struct Ended {
    pid_t process = 0;
    const char* because = "";
    auto operator<=>(const Ended&) const = default;
  };
  std::map<Ended, std::size_t> ended_;  ///< not logged yet
  Clock::time_point next_log_{};
};

}  // namespace topolet::cri
