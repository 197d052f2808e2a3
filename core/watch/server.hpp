// The watch socket: what a node's agent may know of a running topoletd. Nothing can be changed by it.
//
// The room core/watch, namespace topolet::watch: reads and answers the calls of watch.proto, and keeps the stream of
// what the engine commits (feed.hpp). The proxy carries the calls, apart from those of the kubelet and of the operator.
// The room may include core/base, core/cri/call.hpp, core/cri/socket, whose OwnServer it uses, core/control/answer.hpp,
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
#include "core/cri/socket/listener.hpp"
#include "core/cri/socket/own_server.hpp"
#include "core/watch/feed.hpp"
#include "core/watch/watch.pb.h"

namespace topolet::watch {

/// The functions that answer the other calls; each on a thread of its own, so that neither waits for the other.
struct WatchHandlers {
  /// `is_wanted`: whether somebody still waits for the answer. Others wait for this one: it is to end when nobody does.
  using IsWanted = cri::OwnServer::IsWanted;
  std::function<Status(const v1::FitsRequest&, v1::FitsResponse&, const IsWanted& is_wanted)> fits;
  std::function<Status(v1::MetricsResponse&)> metrics;
};

struct WatchOptions {
  std::string path;
  std::optional<gid_t> group;  ///< whose members may connect, beside the owner; none: the process's group
  // As the listener's.
  std::size_t max_memory_bytes = 0;
  std::shared_ptr<cri::MemoryClaims> memory_claims = nullptr;
};

/// The server of the watch socket, with mode 0660; as cri::OwnServer::open(). stop() ends the feed and all connections
/// as well. `feed` must outlive it.
Result<std::unique_ptr<cri::OwnServer>> open_server(WatchOptions options, cri::Listener::Sockets sockets,
                                                    WatchHandlers handlers, Feed& feed, Log& log);

}  // namespace topolet::watch
