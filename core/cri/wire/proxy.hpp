// The byte-faithful proxy: relays every call on its socket to the runtime, and hands some of them to the core first.
//
// The room core/cri/wire, namespace topolet::cri: carries calls between the kubelet and the runtime without reading
// them. Start at Proxy. It may include gRPC, core/base and core/cri; not core/cri/messages.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/unique_fd.hpp"
#include "core/cri/call.hpp"

namespace topolet::cri {

class ClientCalls;

struct ProxyOptions {
  std::string runtime_endpoint;     ///< "unix:///path"
  std::string image_endpoint = {};  ///< where ImageService calls go; empty: the runtime's
  int max_message_bytes = 64 << 20;
  int max_metadata_bytes = 16 << 20;
  /// The time that stop() waits for the unary calls it serves.
  std::chrono::milliseconds drain_timeout{2000};
  Clock clock = {};  ///< of how long calls wait for their turn; see CallAdmission
};

/// The events that the core wants to see. Method names are short ones ("CreateContainer") and mean RuntimeService of v1
/// and v1alpha2. All functions run on the I/O thread and must not block.
struct ProxyHooks {
  std::set<std::string, std::less<>> intercepted;
  std::function<void(std::shared_ptr<Call>)> on_call;

  std::set<std::string, std::less<>> observed;
  std::function<void(const ObservedMessage&)> on_observed;  ///< after the answer went on to the client

  std::set<std::string, std::less<>> rewritten = {};
  /// An OK answer, or a message of a stream, as the client is to have it; none where it goes on as it came.
  std::function<std::optional<std::string>(const ObservedMessage&)> rewrite = {};

  std::function<void(const FinishedCall&)> on_finished = {};  ///< of every call but those of topoletd's own

  /// A call on a socket of topoletd's own, see Proxy::accept_own().
  std::function<void(std::shared_ptr<OwnCall>)> on_own_call = {};

  /// The runtime can be reached again after it could not be. (Not the first time, if that succeeds at once.)
  std::function<void()> on_connected;
};

/// Any thread may call any function; none but call() from inside a hook.
class Proxy final : public Runtime {
 public:
  /// call() works from here on; the other hooks wait for start().
  Proxy(const ProxyOptions& options, ProxyHooks hooks, Log& log);
  ~Proxy() override;
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// Takes calls and watches the connection to the runtime from here on. Once.
  void start();
  /// Serves one client on its connected, non-blocking socket. Its calls are known as such while the result lives.
  std::shared_ptr<ClientCalls> accept(UniqueFd connection);
  /// Sets whether there is little memory left: then each client has few calls at a time at the runtime.
  void set_memory_short(bool is_short);
  /// The same for a client of topoletd itself: none of its calls goes to the runtime, all of them to `on_own_call`, and
  /// no call of the other clients does. (A second gRPC server would need a second thread that polls, and in one process
  /// such threads take each other's events.) Its calls are refused once the result is let go.
  std::shared_ptr<ClientCalls> accept_own(UniqueFd connection, OwnSocket socket);

  /// Returns true if the channel to the runtime is up.
  bool connected() const;

  /// As Runtime::call; after stop() `done` runs at once, on the caller's thread, with UNAVAILABLE.
  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const RuntimeResponse&)> done) override;

  /// Runs `work` on the thread that serves all calls, so that whoever posts it sees that the thread goes on. Dropped
  /// after stop(). Any thread.
  void post(std::function<void()> work);

  // The steps, in order, by which another process takes this one's place without failing a call.

  /// Has the clients of these connections, duplicates of ones that were accepted, make their next calls on new
  /// connections. Calls under way on the old ones go on. Does not wait.
  void ask_to_reconnect(std::vector<UniqueFd> connections);
  /// From here on, new calls go to the topoletd that will listen on `endpoint`, and the core gets none. Once.
  void forward_to(const std::string& endpoint);
  /// Waits until the calls that the core has are answered. False if some are not after `patience`.
  bool wait_for_core(std::chrono::milliseconds patience);
  /// Once the core has ended: the calls that it had get the runtime's answer, or, if the runtime was not asked yet, the
  /// successor's.
  void take_calls_from_core();
  /// Ends the streams that would never end with UNAVAILABLE, so that their clients begin them anew with the successor.
  void end_streams();
  /// No call is under way but those, and none came for so long.
  bool is_quiet_for(std::chrono::milliseconds period) const;

  /// Refuses new calls and waits `drain_timeout` for unary ones.
  void drain();
  /// Drains, cancels everything that is left and ends the I/O thread. Calls that the core still holds may be used
  /// afterwards; they end CANCELLED.
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace topolet::cri
