// The watch socket: what a node's agent may know of a running topoletd. Nothing can be changed by it.
//
// The room core/watch, namespace topolet::watch: reads and answers the calls of watch.proto, and keeps the stream of
// what the engine commits (feed.hpp). The proxy carries the calls, apart from those of the kubelet and of the operator.
// The room may include core/base, core/cri/call.hpp, core/cri/socket, whose listener it uses, core/control/answer.hpp,
// core/placement, core/topology and core/engine/state.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/watch/feed.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::watch {

/// The functions that answer the other calls; each on a thread of its own, so that neither waits for the other.
struct WatchHandlers {
  /// `is_wanted`: whether somebody still waits for the answer. Others wait for this one: it is to end when nobody does.
  using IsWanted = std::function<bool()>;
  std::function<Status(const v1::FitsRequest&, v1::FitsResponse&, const IsWanted& is_wanted)> fits;
  std::function<Status(v1::MetricsResponse&)> metrics;
};

/// Listens from open() to stop(). Not for use by several threads, but for on_call().
class WatchServer {
 public:
  struct Options {
    std::string path;
    std::optional<gid_t> group;  ///< whose members may connect, beside the owner; none: the process's group
    // As the listener's.
    std::size_t max_memory_bytes = 0;
    std::shared_ptr<cri::MemoryClaims> memory_claims = nullptr;
  };
  /// Binds the path with mode 0660. FAILED_PRECONDITION if another topoletd, or any live process, serves it; a file
  /// left over by a dead one is replaced. The directory must exist. Clients wait until start(). Where there are
  /// `sockets`, of another topoletd that hands them over, they are used instead. `feed` must outlive it.
  static Result<std::unique_ptr<WatchServer>> open(Options options, cri::Listener::Sockets sockets,
                                                   WatchHandlers handlers, Feed& feed, Log& log);
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  /// `on_connection` gets each client's socket, on the listener's thread, and brings its calls to on_call().
  void start(cri::Listener::OnConnection on_connection);
  /// Has the call answered. Does not block. Any thread.
  void on_call(std::shared_ptr<cri::OwnCall> call);
  /// As the listener's.
  cri::Listener::Sockets duplicate_sockets() const;
  void disown_file();
  /// Ends listening and all connections, and waits for the answers that are being made. Later calls are answered
  /// UNAVAILABLE.
  void stop();

 private:
  WatchServer();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::watch
