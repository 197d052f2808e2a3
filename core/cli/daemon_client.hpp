// The running topoletd, seen through its control socket.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/base/result.hpp"
#include "core/cli/command.hpp"
#include "core/control/control.grpc.pb.h"

namespace topolet::cli {

/// Plain calls; each waits for its answer.
class DaemonClient {
 public:
  /// On the socket that control_socket() finds. UNAVAILABLE if nobody answers on it, PERMISSION_DENIED if we may not
  /// ask; says why and what to do.
  static Result<DaemonClient> connect(const Invocation& invocation);

  static constexpr std::chrono::milliseconds kCallTimeout{30000};

  template <class Ask, class Answer>
  Result<Answer> call(grpc::Status (control::v1::Control::Stub::*method)(grpc::ClientContext*, const Ask&, Answer*),
                      const Ask& ask, std::chrono::milliseconds timeout = kCallTimeout) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    Answer answer;
    const grpc::Status status = (stub_.get()->*method)(&context, ask, &answer);
    if (status.ok()) return answer;
    return explained(status);
  }

 private:
  explicit DaemonClient(std::string socket);
  Error explained(const grpc::Status& status) const;

  std::string socket_;
  std::unique_ptr<control::v1::Control::Stub> stub_;
};

}  // namespace topolet::cli
