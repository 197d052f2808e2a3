// The agent's end of topoletd's watch socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cluster/agent/async_calls.hpp"
#include "cluster/agent/node.hpp"
#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/watch/watch.grpc.pb.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace topolet::agent {

/// Counters of the client, for metrics.
struct WatchCounts {
  std::uint64_t snapshots = 0;
  std::uint64_t deltas = 0;
  std::uint64_t lost_connections = 0;
  std::chrono::milliseconds last_lag{};  ///< from a change's commit until it came here, of the newest
};

/// Follows the stream on a thread of its own, from start() to stop(), and connects again when it ends: at first at
/// once, then each time twice as long later, at most `longest_pause`.
class WatchClient {
 public:
  struct Options {
    std::string socket;  ///< a path
    std::chrono::milliseconds longest_pause{1000};
    bool load = false;  ///< asks for what is measured, too: topoletd measures then
    Clock clock = {};   ///< for the time at which something was told
    /// Waits before the next attempt, on the thread; empty: by the real clock, and until stop() at the longest.
    std::function<void(std::chrono::milliseconds)> pause = {};
  };
  /// `node` must outlive it.
  WatchClient(Options options, Node& node, Log& log);
  ~WatchClient();
  WatchClient(const WatchClient&) = delete;
  WatchClient& operator=(const WatchClient&) = delete;

  void start();
  void stop();

  // Any thread.
  /// topoletd's metrics, in the text format. UNAVAILABLE if it does not answer in time.
  Result<std::string> metrics(std::chrono::milliseconds patience) const;
  WatchCounts counts() const TOPOLET_EXCLUDES(mutex_);
  /// How much fits on each node. `on_answer` is called on another thread, and before the client is gone.
  using OnFits = std::function<void(Result<watch::v1::FitsResponse>)>;
  void ask_what_fits(watch::v1::FitsRequest request, OnFits on_answer);

 private:
  void run();
  void follow();
  void take(const watch::v1::WatchResponse& response);
  void add_to_counts(const watch::v1::WatchResponse& response, std::chrono::milliseconds now) TOPOLET_EXCLUDES(mutex_);
  void note_loss(const std::string& why);
  /// False if it is to end.
  bool pause(std::chrono::milliseconds duration) TOPOLET_EXCLUDES(mutex_);
  void wait_for_stop(std::chrono::milliseconds duration) TOPOLET_EXCLUDES(mutex_);

  const Options options_;
  Node& node_;
  Log& log_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<watch::v1::Watch::Stub> stub_;
  std::thread thread_;
  bool is_told_ = false;       ///< the thread's: that there is no connection
  bool got_snapshot_ = false;  ///< the thread's: on the present connection
  mutable Mutex mutex_;
  CondVar ending_;
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ TOPOLET_GUARDED_BY(mutex_) = nullptr;  ///< of the stream that is open
  WatchCounts counts_ TOPOLET_GUARDED_BY(mutex_);
  AsyncCalls calls_;
};

}  // namespace topolet::agent
