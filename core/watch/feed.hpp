// The stream of the engine's commits, to all readers of the watch socket.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/cri/call.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/engine/state/observer.hpp"
#include "core/watch/node_state.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::watch {

/// Keeps what the committed transitions add up to, on a thread of its own, so that a new reader gets just that, and
/// nothing that may still be lost. The engine's loop only turns each transition into a message.
class Feed final : public engine::Observer {
 public:
  struct Options {
    std::string version;    ///< topoletd's
    std::string host = {};  ///< the name of the machine
    /// The number of bytes that a reader may leave unread. One that leaves more is cut off.
    std::size_t max_unread_bytes = 8 << 20;
    std::size_t max_readers = 64;
    /// The time that a change waits for others, so that readers are sent fewer messages.
    std::chrono::milliseconds gather{10};
    /// At least so long apart are messages while changes keep coming: each wakes up every reader.
    std::chrono::milliseconds pace{100};
    Clock clock = {};
  };
  explicit Feed(Options options);
  ~Feed() override;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // The engine's loop.
  void on_loaded(const engine::Ledger& ledger) override;
  void on_durable(const engine::Transition& transition) override;
  void on_reconciled() override;

  // Any thread.
  /// The enabled plugins from now on.
  void set_plugins(v1::PluginList plugins);
  /// All that is not as it should be, from now on.
  void set_illnesses(v1::IllnessList illnesses);
  /// What is measured now: sent at once to the readers that ask for it, but for those that are behind.
  void set_load(v1::Load load);
  /// Returns true while a reader asks for what is measured, or has until lately.
  bool wants_load() const { return wants_load_; }
  /// Answers with the stream.
  void subscribe(std::shared_ptr<cri::OwnCall> call);
  const std::string& instance() const { return instance_; }
  /// Sends what is due by the clock, and returns then. For those whose clock passes only when they say so: others need
  /// not call it, nor may anybody after stop().
  void run_due();
  /// Ends all streams, and waits until their clients have been told, or a moment has passed. Later ones are refused.
  void stop();

 private:
  v1::Delta begin_delta() const;
  void apply(v1::Delta delta);
  void wake_when_due();
  void send_if_due();
  void flush();
  void begin(const std::shared_ptr<cri::OwnCall>& call);
  void forget_ended();

  const Options options_;
  const std::string instance_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> wants_load_ = false;
  engine::CpuInventory inventory_;  ///< the loop's: after the newest transition

  // The thread's.
  bool stopped_ = false;
  NodeState state_;
  v1::Deltas gathered_;                          ///< that no reader was sent yet
  std::chrono::steady_clock::time_point due_{};  ///< when they are sent
  std::chrono::steady_clock::time_point last_sent_ = std::chrono::steady_clock::time_point::min();
  std::vector<std::shared_ptr<cri::OwnCall>> readers_;
  std::vector<std::shared_ptr<cri::OwnCall>> load_readers_;  ///< those of them that ask for what is measured

  struct Thread;
  const std::unique_ptr<Thread> thread_;
};

}  // namespace topolet::watch
