// What the in-memory runtime knows, and its answers: those of containerd, as far as the benchmarks and topoletd look.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/bench/judge.hpp"
#include "tests/support/cri.pb.h"

namespace topolet::bench {

/// The runtime's method, not one of the CRI, that answers how many updates of containers there were, in decimal.
inline constexpr std::string_view kCountUpdates = "CountUpdates";

/// Not synchronised. Lists are kept as bytes until a container or sandbox changes.
class ContainerStore {
 public:
  /// `judge` is told of every change, and may be null.
  explicit ContainerStore(Judge* judge = nullptr);

  /// `message` holds the request, and then the answer. A method that is not known leaves it as it is.
  grpc::Status serve(std::string_view method, grpc::ByteBuffer& message);

 private:
  struct Container {
    runtime::v1::Container listed;
    runtime::v1::ContainerConfig config;
    runtime::v1::LinuxContainerResources resources;
    std::string cgroup_parent;
    std::int64_t pid = 0;
  };
  using Handler = grpc::Status (ContainerStore::*)(grpc::ByteBuffer&);

  grpc::Status version(grpc::ByteBuffer& message);
  grpc::Status status(grpc::ByteBuffer& message);
  grpc::Status run_sandbox(grpc::ByteBuffer& message);
  grpc::Status stop_sandbox(grpc::ByteBuffer& message);
  grpc::Status remove_sandbox(grpc::ByteBuffer& message);
  grpc::Status sandbox_status(grpc::ByteBuffer& message);
  grpc::Status list_sandboxes(grpc::ByteBuffer& message);
  grpc::Status create(grpc::ByteBuffer& message);
  grpc::Status start(grpc::ByteBuffer& message);
  grpc::Status stop(grpc::ByteBuffer& message);
  grpc::Status remove(grpc::ByteBuffer& message);
  grpc::Status update(grpc::ByteBuffer& message);
  grpc::Status list(grpc::ByteBuffer& message);
  grpc::Status container_status(grpc::ByteBuffer& message);
  grpc::Status count_updates(grpc::ByteBuffer& message);

  void set_state(Container& container, runtime::v1::ContainerState state);
  void remove_all_in(const std::string& sandbox_id);
  void forget_lists();
  void tell_judge(std::string_view event, const Container& container);
  void tell_judge(std::string_view event, const Container& container, ObservedContainer::State state);

  Judge* const judge_;
  const std::unordered_map<std::string_view, Handler> handlers_;
  std::map<std::string, runtime::v1::PodSandbox> sandboxes_;
  std::map<std::string, Container> containers_;
  std::uint64_t last_number_ = 0;
  std::uint64_t updates_ = 0;
  grpc::ByteBuffer container_list_;  ///< not valid: must be made anew
  grpc::ByteBuffer sandbox_list_;
};

}  // namespace topolet::bench
