// The watch socket of a simulated topoletd, for programs such as topolet-agent.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/engine.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::simulate {

/// Served as topoletd serves its own, on threads of its own, from open() to stop().
class WatchSocket {
 public:
  struct Options {
    std::string path;
    std::size_t max_memory_bytes = 0;  ///< as the daemon's option
    watch::v1::PluginList plugins;
  };
  /// On one of the socket's threads, while `busy` is held.
  using ComputeFits = std::function<Result<engine::Engine::NodeFits>(
      const std::vector<engine::PendingContainer>& pending, engine::MayGoOn may_go_on)>;

  /// The errors of watch::open_server(). `busy` is held by whoever uses the simulation.
  static Result<std::unique_ptr<WatchSocket>> open(Options options, ComputeFits compute_fits, std::timed_mutex& busy,
                                                   Log& log);
  ~WatchSocket();
  WatchSocket(const WatchSocket&) = delete;
  WatchSocket& operator=(const WatchSocket&) = delete;

  /// Hears of the engine's transitions.
  engine::Observer& observer();
  /// Ends all connections. The caller may hold `busy`. Nothing is computed any more when it returns.
  void stop();

 private:
  struct Impl;
  explicit WatchSocket(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::simulate
