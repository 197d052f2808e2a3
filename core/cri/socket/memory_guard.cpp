#include "core/cri/socket/memory_guard.hpp"

#include <malloc.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/resident_memory.hpp"
#include "core/base/text.hpp"
#include "core/cri/socket/client_reads.hpp"

namespace topolet::cri {
namespace {

using std::chrono::milliseconds;

/// Looked at so often whatever happens: memory is given back when all is quiet.
constexpr milliseconds kIdlePeriod{500};
constexpr milliseconds kBusyPeriod{5};
/// So much may arrive before anybody looks: a few calls do not wake the thread.
constexpr std::uint64_t kUnseenBytes = 64 << 10;
/// gRPC frees what an ended connection had on its own thread, beside the other clients' calls. It is done after so
/// long, or if calls were under way, when the last of them has ended.
constexpr milliseconds kEffectWithin{60};
constexpr milliseconds kCallsEndWithin{1000};
/// Whoever has less is not what fills the memory.
constexpr std::size_t kLeastBytes = 256 << 10;
/// All clients together may have begun so many requests that are not complete. Each of them makes all calls slower:
/// gRPC looks through what is under way more than once a call.
constexpr std::size_t kMostAwaited = 1024;
/// A client that has had fewer calls answered gets no turn while there is more memory in use than allowed.
constexpr std::uint64_t kKnown = 16;
/// gRPC may have reasons of its own not to read. Until then nobody else is resumed: what the thread has not come to
/// would queue up before the calls of those who wait for no turn.
constexpr milliseconds kLongestTurn{200};
constexpr milliseconds kLongestArrival{20};
constexpr milliseconds kTurnPollPeriod{1};
constexpr milliseconds kLongestHold{100};
constexpr milliseconds kTrimPeriod{20};
/// And no sooner than after so many times what it took.
constexpr int kTrimPause = 5;
constexpr std::size_t kTrimBytes = 16 << 20;
constexpr milliseconds kLogPeriod{1000};

constexpr const char* kTakesMost = "it took up most, with calls under way or requests that were not complete";
constexpr const char* kBeginsMost = "it had begun most requests without completing them";
constexpr const char* kReadsNothing = "it does not read its responses";

}  // namespace

MemoryGuard::MemoryGuard(std::size_t max_bytes, Connections& connections, Actions actions,
                         std::shared_ptr<MemoryClaims> claims, Log& log)
    : max_bytes_(max_bytes),
      connections_(connections),
      actions_(std::move(actions)),
      claims_(std::move(claims)),
      log_(log),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // Sets up glibc's allocator before there are threads of guards. Under a sanitizer, which allocates by itself, nothing
  // else has done so, and mallinfo2() crashes where two threads do it at once.
  (void)::mallinfo2();
  client_reads::wake_after(event_.get(), kUnseenBytes);
}

MemoryGuard::~MemoryGuard() {
  client_reads::wake_no_more(event_.get());
  claims_->forget(this);
}

int MemoryGuard::wait_ms() const {
  const auto now = Clock::now();
  auto until = next_check_;
  if (some_wait_) until = std::min(until, now + kTurnPollPeriod);
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<milliseconds>(until - now).count()));
}

void MemoryGuard::run() {
  eventfd_t count = 0;
  const bool woken = ::eventfd_read(event_.get(), &count) == 0;
  if (woken || some_wait_) give_turns();
  if (woken || Clock::now() >= next_check_) check_memory();
}

// Least attained service: whoever had least goes first, so a large message of a client that sends few passes those that
// send without end. One at a time, so that between two turns everyone is served who has little to say.
void MemoryGuard::give_turns() {
  const auto now = Clock::now();
  if (in_turn_) {
    const std::optional<client_reads::Reads> reads = connections_.reads_of(*in_turn_);
    if (reads && reads->turns == turns_before_ && now - resumed_at_ < kLongestTurn) return;
    // gRPC reads requests faster than it begins the calls.
    if (connections_.has_requests_on_the_way(*in_turn_) && now - resumed_at_ < kLongestArrival) return;
    connections_.forget_requests_on_the_way(*in_turn_);
    in_turn_.reset();
  }
  // For a while: it may be other things that fill the memory.
  const bool holds_back = over_ && now - resumed_at_ < kLongestHold;
  const Connections::Waiting waiting = connections_.least_served_waiting(holds_back ? kKnown : 0);
  some_wait_ = waiting.any;
  if (!waiting.next) return;
  in_turn_ = waiting.next;
  turns_before_ = connections_.reads_of(*in_turn_)->turns;
  resumed_at_ = now;
  connections_.resume(*in_turn_);
}

void MemoryGuard::check_memory() {
  const auto now = Clock::now();
  std::size_t bytes = resident_bytes();
  if (trim(bytes)) bytes = resident_bytes();
  const std::size_t awaited = connections_.awaited_requests(kKnown);
  over_ = bytes > max_bytes_ || awaited > kMostAwaited;
  note_limit(bytes);
  tell_whether_short(bytes);
  if (bytes > max_bytes_ / 2) connections_.sample_stalled();
  tell_claim(bytes);
  if (over_) end_heaviest(bytes, awaited);
  log_ended();
  const std::uint64_t total = client_reads::total_bytes();
  const bool busy = over_ || std::exchange(seen_bytes_, total) != total;
  if (!busy) client_reads::wake_after(event_.get(), kUnseenBytes);
  next_check_ = now + (busy ? kBusyPeriod : kIdlePeriod);
}

void MemoryGuard::note_limit(std::size_t bytes) {
  const auto now = Clock::now();
  if (bytes <= max_bytes_ || now < next_warning_) return;
  next_warning_ = now + std::chrono::minutes(1);
  log_.warn(
      "topoletd uses {} MiB of memory, more than {} MiB (daemon.max-memory-mib); disconnecting the clients that take "
      "up most: they send without completing a request, have many calls under way or do not read their responses",
      bytes >> 20, max_bytes_ >> 20);
}

/// Somewhat before it is too late: the others look at other moments.
void MemoryGuard::tell_claim(std::size_t bytes) {
  MemoryClaims::Claim claim{.freed_lately = bytes_freed_lately()};
  if (bytes > max_bytes_ / 2) {
    if (const auto heaviest = connections_.heaviest(kLeastBytes)) claim.heaviest = heaviest->weight;
  }
  claims_->tell(this, claim, Clock::now());
}

void MemoryGuard::end_heaviest(std::size_t bytes, std::size_t awaited) {
  const MemoryClaims::Claim others = claims_->of_others(this, Clock::now());
  std::size_t being_freed = bytes_being_freed() + others.freed_lately;
  // Somewhat less, or as much as was freed would come in again at once.
  const std::size_t goal = bytes > max_bytes_ ? max_bytes_ / 8 * 7 : bytes;
  while (bytes > goal + being_freed || awaited > kMostAwaited) {
    const bool too_many = awaited > kMostAwaited;
    const std::optional<Connections::Heaviest> heaviest =
        too_many ? connections_.most_awaited() : connections_.heaviest(kLeastBytes);
    if (!heaviest || (!too_many && heaviest->weight < others.heaviest)) break;
    end(heaviest->fd, too_many ? kBeginsMost : heaviest->is_unread ? kReadsNothing : kTakesMost);
    // Bytes that a client has not read may be something other than answers, and not be counted.
    const std::size_t freed = std::max(heaviest->bytes, kLeastBytes);
    being_freed += freed;
    awaited -= std::min(awaited, heaviest->awaited_requests);
    freed_.push_back({freed, heaviest->calls, Clock::now()});
  }
  tell_claim(bytes);
}

std::size_t MemoryGuard::bytes_being_freed() const {
  const auto now = Clock::now();
  std::size_t bytes = 0;
  for (const Freed& freed : freed_) {
    if (now - freed.since <= (freed.calls.expired() ? kEffectWithin : kCallsEndWithin)) bytes += freed.bytes;
  }
  return bytes;
}

std::size_t MemoryGuard::bytes_freed_lately() {
  std::erase_if(freed_, [now = Clock::now()](const Freed& freed) { return now - freed.since > kCallsEndWithin; });
  std::size_t bytes = 0;
  for (const Freed& freed : freed_) bytes += freed.bytes;
  return bytes;
}

void MemoryGuard::tell_whether_short(std::size_t bytes) {
  const bool is_short = bytes > max_bytes_ / 4 * 3;
  if (std::exchange(short_, is_short) != is_short && actions_.on_memory_short) actions_.on_memory_short(is_short);
}

void MemoryGuard::end(int fd, const char* because) {
  ++ended_[{connections_.process_of(fd), because}];
  actions_.disconnect(fd);
}

void MemoryGuard::log_ended() {
  const auto now = Clock::now();
  if (ended_.empty() || now < next_log_) return;
  for (const auto& [ended, count] : ended_) {
    log_.warn("disconnected {} of process {}: {}", counted(count, "connection"), ended.process, ended.because);
  }
  ended_.clear();
  next_log_ = now + kLogPeriod;
}

/// Returns freed memory to the system. It lies between memory in use, and is not returned on its own. Returns true if
/// some may have been.
bool MemoryGuard::trim(std::size_t bytes) {
  const auto now = Clock::now();
  if (now < next_trim_ && (over_ || bytes <= max_bytes_)) return false;
  if (bytes <= max_bytes_) {
    next_trim_ = now + kIdlePeriod;
    return heap_trimmer_.trim_if_worthwhile(bytes);
  }
  const bool worthwhile = ::mallinfo2().fordblks >= kTrimBytes;
  if (worthwhile) ::malloc_trim(0);
  // Nobody can allocate meanwhile.
  const auto after = Clock::now();
  next_trim_ = after + std::max<Clock::duration>(kTrimPeriod, kTrimPause * (after - now));
  return worthwhile;
}

}  // namespace topolet::cri
