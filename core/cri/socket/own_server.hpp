// A socket of topoletd's own, beside the one that the kubelet uses: what the control and the watch socket have in
// common.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/cri/call.hpp"
#include "core/cri/socket/listener.hpp"

namespace topolet::cri {

/// Listens, and has the calls of one service answered. Listens from open() to stop(). Not for use by several threads,
/// but for on_call().
class OwnServer {
 public:
  /// False once nobody waits for the answer any more: the client has gone, or the server stops.
  using IsWanted = std::function<bool()>;
  using Answer = std::function<void(OwnCall& call, const IsWanted& is_wanted)>;
  /// Must not block.
  using Take = std::function<void(std::shared_ptr<OwnCall> call)>;

  struct Method {
    /// The calls of all methods of a queue are answered one after the other, on a thread of their own.
    std::size_t queue = 0;
    Answer answer = {};
    Take take = {};  ///< instead of `answer`: gets the call at once, on the thread that brings it
  };
  struct Service {
    std::string path;  ///< "/topolet.control.v1.Control/"
    std::map<std::string, Method, std::less<>> methods;
    std::string socket;     ///< "the control socket", for whoever calls a method that it has not
    std::string what_else;  ///< for the same: what to do instead
    std::optional<int> most_waiting = std::nullopt;  ///< calls in a queue; more are rejected with RESOURCE_EXHAUSTED
    bool skips_unwanted = false;                     ///< calls whose client has gone before their turn are not answered
    std::function<void()> on_stop = {};              ///< called by stop() when no connection comes any more
    bool disconnects_at_stop = false;                ///< the connections that are left end with stop()
  };

  /// Binds as Listener::open() does, with its errors. Clients wait until start(). Where there are `sockets`, of another
  /// topoletd that hands them over, they are used instead.
  static Result<std::unique_ptr<OwnServer>> open(ListenerOptions options, Listener::Sockets sockets, Service service,
                                                 Log& log);
  ~OwnServer();
  OwnServer(const OwnServer&) = delete;
  OwnServer& operator=(const OwnServer&) = delete;

  /// `on_connection` gets each client's socket, on the listener's thread, and brings its calls to on_call().
  void start(Listener::OnConnection on_connection);
  /// Has the call answered. Does not block. Any thread.
  void on_call(std::shared_ptr<OwnCall> call);
  /// As the listener's.
  Listener::Sockets duplicate_sockets() const { return listener_->duplicate_sockets(); }
  void disown_file() { listener_->disown_file(); }
  /// Ends listening, and waits for the answers that are being made. Later calls are answered UNAVAILABLE.
  void stop();

 private:
  struct Queue;

  OwnServer(std::unique_ptr<Listener> listener, Service service);
  void post(const Method& method, std::shared_ptr<OwnCall> call);

  const std::unique_ptr<Listener> listener_;
  const Service service_;
  std::map<std::size_t, std::unique_ptr<Queue>> queues_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace topolet::cri
