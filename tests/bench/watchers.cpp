// Programs that follow topoletd, as agents do.
#include <grpcpp/grpcpp.h>

#include <thread>
#include <vector>

#include "core/watch/watch.grpc.pb.h"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

void follow(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = watch::v1::Watch::NewStub(
      grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = stub->Watch(&context, {});
  watch::v1::WatchResponse response;
  while (stream->Read(&response)) continue;
}

}  // namespace

void run_watchers(const std::string& socket, std::size_t count) {
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < count; ++i) readers.emplace_back([&socket] { follow(socket); });
  for (std::thread& reader : readers) reader.join();
}

}  // namespace topolet::bench
