// One call of a client of topoletd itself.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.hpp"
#include "core/cri/call.hpp"
#include "core/cri/wire/call_admission.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/proxy_context.hpp"

namespace topolet::cri {

/// Reads the request, hands it to `ProxyHooks::on_own_call` and sends the answer, or one message of a stream after the
/// other. Lives as long as an operation of it is pending or somebody holds the handle that it gave to the hook.
class PendingOwnCall : public std::enable_shared_from_this<PendingOwnCall> {
 public:
  /// I/O thread.
  static void serve(const std::shared_ptr<ProxyContext>& proxy, const std::shared_ptr<IncomingCall>& incoming);

  OwnSocket socket() const { return socket_; }
  const std::string& path() const { return path_; }
  const std::string& request() const { return request_bytes_; }
  /// The first of all answers counts. Any thread, as all that follow.
  void answer(const std::string& response) TOPOLET_EXCLUDES(mutex_);
  void reject(const grpc::Status& status) TOPOLET_EXCLUDES(mutex_);
  void send(std::shared_ptr<const std::string> message) TOPOLET_EXCLUDES(mutex_);
  std::size_t unsent_bytes() const TOPOLET_EXCLUDES(mutex_);
  void cut_off() TOPOLET_EXCLUDES(mutex_);
  bool has_ended() const TOPOLET_EXCLUDES(mutex_);

 private:
  PendingOwnCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming,
                 std::shared_ptr<ClientCalls> client);

  void read();
  void on_request(bool ok);
  void on_message_sent(bool ok) TOPOLET_EXCLUDES(mutex_);
  void on_sent(bool) {}
  void on_end() TOPOLET_EXCLUDES(mutex_);
  bool claim_reply() TOPOLET_REQUIRES(mutex_) { return !ended_ && !std::exchange(replied_, true); }
  void write_next() TOPOLET_REQUIRES(mutex_);

  const std::shared_ptr<ProxyContext> proxy_;
  const std::shared_ptr<IncomingCall> incoming_;
  const OwnSocket socket_;
  const std::string path_;
  CallTicket ticket_;  ///< the I/O thread's
  grpc::ByteBuffer request_;
  std::string request_bytes_;  ///< written before the hook sees the call

  mutable Mutex mutex_;
  bool ended_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< gRPC let go of the call: nothing can be sent
  bool replied_ TOPOLET_GUARDED_BY(mutex_) = false;
  /// The first is being written while `writing_`.
  std::deque<std::shared_ptr<const std::string>> unsent_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t unsent_bytes_ TOPOLET_GUARDED_BY(mutex_) = 0;
  bool writing_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> last_status_ TOPOLET_GUARDED_BY(mutex_);  ///< to be sent behind what is being written

  PendingOperation<PendingOwnCall, &PendingOwnCall::on_request> request_op_;
  PendingOperation<PendingOwnCall, &PendingOwnCall::on_message_sent> message_op_;
  PendingOperation<PendingOwnCall, &PendingOwnCall::on_sent> sent_op_;
};

}  // namespace topolet::cri
