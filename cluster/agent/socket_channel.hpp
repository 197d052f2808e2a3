// A gRPC channel to a unix socket of this machine.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace topolet::agent {

/// A connection of its own, which is made anew half a second after it was lost at the latest. Calls are never repeated
/// by gRPC.
inline std::shared_ptr<grpc::Channel> connect_to_socket(const std::string& path, int max_message_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  return grpc::CreateCustomChannel("unix://" + path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace topolet::agent
