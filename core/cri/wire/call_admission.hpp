// Decides which calls go on to the runtime, and when.
//
// gRPC takes as many calls of a client as come, and the runtime would get them all at once; a client that calls without
// end, and perhaps reads no answer, would fill the memory and keep the runtime busy for everybody. So each call has a
// ticket, which says what the call takes up, and waits until the client may have one more at the runtime:
//
//  - A client begins with few at a time and gets one more for each that is answered, up to its share of all.
//  - Calls may last long. One that has waited for a moment goes while the runtime has few, and in any case after a
//    second.
//  - While memory is short, one of a client goes so each second: it may then last for minutes.
//  - For a client that leaves much unread neither holds.
//
// Streams may be endless, and so never wait; of them, too, there are only so many.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/clock.hpp"
#include "core/base/mutex.hpp"
#include "core/cri/call.hpp"

namespace topolet::cri {

class CallAdmission;
class EventLoop;

/// The calls of one connection that are under way. CallAdmission makes it.
class ClientCalls {
 public:
  struct Load {
    std::size_t bytes = 0;           ///< that its calls take up in memory, roughly
    std::size_t response_bytes = 0;  ///< of these, answers that the client has not read to the end
    /// For how long it has left those; the less, the more of them it has read since.
    std::chrono::milliseconds unread_for{0};
    std::uint64_t answered = 0;  ///< how many calls the client has got the whole answer of
    std::uint64_t arrived = 0;   ///< how many have come so far
    /// The calls under way whose header has come, but not the message.
    std::size_t awaited_requests = 0;
  };
  /// `own_socket`: the socket of topoletd itself that the client connected to; none for those of the kubelet's.
  explicit ClientCalls(std::optional<OwnSocket> own_socket = std::nullopt, Clock clock = {})
      : own_socket_(own_socket), clock_(std::move(clock)) {}

  std::optional<OwnSocket> own_socket() const { return own_socket_; }
  /// Any thread.
  Load load() const;

 private:
  friend class CallAdmission;
  friend class CallTicket;
  using Time = std::chrono::steady_clock::time_point;

  struct Waiting {
    std::function<void()> start;
    Time since;
  };

  void note_read(std::size_t response_bytes);

  const std::optional<OwnSocket> own_socket_;
  const Clock clock_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::size_t> response_bytes_ = 0;
  std::atomic<Time> unread_since_{};
  std::atomic<std::uint64_t> answered_ = 0;
  std::atomic<std::uint64_t> arrived_ = 0;
  std::atomic<std::size_t> awaited_requests_ = 0;

  // The I/O thread's.
  std::size_t going_ = 0;                     ///< calls that have had their turn
  std::map<std::uint64_t, Waiting> waiting_;  ///< by the number of the ticket, the oldest first
  Time hurried_at_{};                         ///< when one went last while memory was short, as it had waited for long
  std::size_t streams_ = 0;
};

/// Functions without a remark are for the I/O thread.
class CallAdmission {
 public:
  /// A call that the runtime has, with what gRPC keeps for both of its halves; and one that waits.
  static constexpr std::size_t kGoingBytes = 64 << 10;
  static constexpr std::size_t kWaitingBytes = 16 << 10;
  /// A field of metadata, beside its bytes: each is kept more than once, in maps.
  static constexpr std::size_t kFieldBytes = 256;
  static constexpr std::size_t kFirstCalls = 2;
  /// The calls that all clients together have at the runtime at a time, shared out between those that have any; each
  /// has a few.
  static constexpr std::size_t kCallsOfAll = 1024;
  static constexpr std::size_t kLeastCalls = 8;
  static constexpr std::size_t kCallsWhenShort = 8;
  /// The runtime has few calls.
  static constexpr std::size_t kFewOfAll = 256;
  /// Bytes of answers that a client may leave unread and have more calls.
  static constexpr std::size_t kMostUnreadBytes = 1 << 20;
  /// So many may wait, as each one more costs all others time. Beyond that, whoever has more than its share is refused
  /// further ones; a kubelet may start all the pods of a machine at once.
  static constexpr std::size_t kWaitingOfAll = 4096;
  static constexpr std::size_t kLeastWaiting = 128;
  static constexpr std::size_t kStreamsOfAll = 1024;
  static constexpr std::size_t kLeastStreams = 16;

  /// `clock`: of how long calls wait.
  explicit CallAdmission(EventLoop& loop, Clock clock = {}) : loop_(loop), clock_(std::move(clock)) {}

  /// For the client whose socket has that inode number. Its calls are found as long as somebody holds the result. Any
  /// thread.
  std::shared_ptr<ClientCalls> open(ino_t connection, std::optional<OwnSocket> own_socket = std::nullopt)
      TOPOLET_EXCLUDES(mutex_);
  /// Null if nobody has opened it. `peer`: as gRPC tells it. Any thread.
  std::shared_ptr<ClientCalls> find(std::string_view peer) const TOPOLET_EXCLUDES(mutex_);

  /// Any thread.
  void set_memory_short(bool is_short) { memory_short_ = is_short; }

 private:
  friend class CallTicket;

  bool may_have_more(const ClientCalls& client) const;
  bool may_wait(const ClientCalls& client) const;
  void wait(ClientCalls& client, std::uint64_t ticket, std::function<void()> start);
  /// Starts what the client may have at the runtime by now.
  void start_waiting(ClientCalls& client);
  void start_oldest(ClientCalls& client);
  void hurry(ClientCalls& client, ClientCalls::Time now);
  void forget_waiting(ClientCalls& client);
  void check_again();
  void begin(ClientCalls& client);
  bool begin_stream(ClientCalls& client);
  void end_stream(ClientCalls& client);
  void end(ClientCalls& client);

  EventLoop& loop_;
  const Clock clock_;
  std::atomic<bool> memory_short_ = false;
  std::size_t going_ = 0;
  std::size_t clients_going_ = 0;
  std::size_t streams_ = 0;
  std::size_t clients_streaming_ = 0;
  std::size_t waiting_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::unordered_set<ClientCalls*> clients_waiting_;
  bool checks_again_ = false;

  mutable Mutex mutex_;
  std::unordered_map<ino_t, std::weak_ptr<ClientCalls>> clients_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t purge_at_ TOPOLET_GUARDED_BY(mutex_) = 64;
};

/// One call's. For the I/O thread.
class CallTicket {
 public:
  /// Without a client, a ticket has no effect.
  CallTicket(CallAdmission& admission, std::shared_ptr<ClientCalls> client);
  ~CallTicket() { end(/*answered=*/false); }
  CallTicket(const CallTicket&) = delete;
  CallTicket& operator=(const CallTicket&) = delete;

  /// The call is a unary one, and has come with so many bytes.
  void begin(std::size_t request_bytes);
  /// The call is a stream. False: it should be refused, as the client has too many.
  bool begin_stream();
  /// Runs `start` at once, or when it is the client's turn, unless end() comes first. False: it will not, as the client
  /// has too many that wait. After begin(), once.
  bool wait_for_turn(std::function<void()> start);
  /// The runtime has answered with so many bytes; 0: they are with the client.
  void set_response(std::size_t bytes);
  /// The call is over, and the client has got its answer or not. All but the first have no effect.
  void end(bool answered);

 private:
  void charge(std::size_t bytes);
  void note_request();

  CallAdmission& admission_;
  std::shared_ptr<ClientCalls> client_;
  std::uint64_t number_ = 0;  ///< 0: it has not waited
  bool awaits_request_ = false;
  bool is_going_ = false;
  bool is_stream_ = false;
  std::size_t bytes_ = 0;
  std::size_t response_bytes_ = 0;
};

}  // namespace topolet::cri
