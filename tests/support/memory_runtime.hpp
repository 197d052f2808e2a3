// Containers that exist only as records, and what containerd answers to calls about them, as far as topolet and the
// benchmarks look. For whoever needs a complete runtime and no processes. It is asked over a socket
// (served_runtime.hpp), in the test's own process and at once (tests/engine/scripted_runtime.hpp), or over the fast
// server of the benchmarks (tests/bench/runtime.cpp).
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/index_set.hpp"
#include "tests/support/cri.pb.h"

namespace topolet::testing {

/// Not synchronised. Lists are kept as bytes until a container or sandbox changes.
class MemoryRuntime {
 public:
  struct Container {
    runtime::v1::Container listed;
    runtime::v1::ContainerConfig config = {};             ///< as it was made
    runtime::v1::LinuxContainerResources resources = {};  ///< as updates have left them
    std::string cgroup_parent = {};
    std::int64_t pid = 0;  ///< while it runs; 0: not told
    std::int32_t exit_code = 0;
    std::vector<std::string> ran_on = {};  ///< every set of CPUs that it had while it ran

    bool is_running() const { return listed.state() == runtime::v1::CONTAINER_RUNNING; }
    /// Empty if it was told none, or what no list is.
    CpuSet cpus() const { return CpuSet::parse(resources.cpuset_cpus()).value_or({}); }
  };
  enum class Change : std::uint8_t { kCreated, kStarted, kStopped, kUpdated, kRemoved };
  struct Options {
    bool has_long_ids = false;   ///< as containerd's, 64 hexadecimal digits; otherwise such as "container-2"
    std::int64_t first_pid = 0;  ///< of the containers that are created here; 0: their PIDs are not told
    /// Hears of every change that a call makes, as it takes effect. May be empty.
    std::function<void(Change change, const Container& container)> on_change = {};
  };

  MemoryRuntime() : MemoryRuntime(Options()) {}
  explicit MemoryRuntime(Options options);
  MemoryRuntime(const MemoryRuntime&) = delete;
  MemoryRuntime& operator=(const MemoryRuntime&) = delete;

  /// `message` holds the request, and then the answer. A method that is not known leaves it as it is.
  grpc::Status serve(std::string_view method, grpc::ByteBuffer& message);
  grpc::Status serve(std::string_view method, std::string& message);
  std::vector<std::string> methods() const;

  // Changes without a call.

  /// There is such a container from now on, or it is as this says.
  void put(Container container);
  void put(runtime::v1::PodSandbox sandbox);
  void exit(const std::string& id, std::int32_t exit_code);
  void forget(const std::string& id);

  /// Throws std::out_of_range if there is none.
  Container& container(const std::string& id) { return containers_.at(id); }
  const std::map<std::string, Container>& containers() const { return containers_; }
  const std::map<std::string, runtime::v1::PodSandbox>& sandboxes() const { return sandboxes_; }
  /// Leaves the resources of containers out of answers from now on, as cri-dockerd does.
  void tell_only_processes() { tells_only_processes_ = true; }
  std::uint64_t updates() const { return updates_; }  ///< of containers, that were carried out

 private:
  using Handler = std::function<grpc::Status(grpc::ByteBuffer&)>;

  template <class Request, class Response>
  void handle(std::string_view method, grpc::Status (MemoryRuntime::*handler)(Request&, Response&));
  grpc::Status version(runtime::v1::VersionRequest& request, runtime::v1::VersionResponse& response);
  grpc::Status status(runtime::v1::StatusRequest& request, runtime::v1::StatusResponse& response);
  grpc::Status run_sandbox(runtime::v1::RunPodSandboxRequest& request, runtime::v1::RunPodSandboxResponse& response);
  grpc::Status stop_sandbox(runtime::v1::StopPodSandboxRequest& request, runtime::v1::StopPodSandboxResponse& response);
  grpc::Status remove_sandbox(runtime::v1::RemovePodSandboxRequest& request,
                              runtime::v1::RemovePodSandboxResponse& response);
  grpc::Status sandbox_status(runtime::v1::PodSandboxStatusRequest& request,
                              runtime::v1::PodSandboxStatusResponse& response);
  grpc::Status create(runtime::v1::CreateContainerRequest& request, runtime::v1::CreateContainerResponse& response);
  grpc::Status start(runtime::v1::StartContainerRequest& request, runtime::v1::StartContainerResponse& response);
  grpc::Status stop(runtime::v1::StopContainerRequest& request, runtime::v1::StopContainerResponse& response);
  grpc::Status remove(runtime::v1::RemoveContainerRequest& request, runtime::v1::RemoveContainerResponse& response);
  grpc::Status update(runtime::v1::UpdateContainerResourcesRequest& request,
                      runtime::v1::UpdateContainerResourcesResponse& response);
  grpc::Status container_status(runtime::v1::ContainerStatusRequest& request,
                                runtime::v1::ContainerStatusResponse& response);
  grpc::Status list(grpc::ByteBuffer& message);
  grpc::Status list_sandboxes(grpc::ByteBuffer& message);

  std::string make_id(const char* what);
  void set_state(Container& container, runtime::v1::ContainerState state, Change change);
  void end_process(Container& container, std::int32_t exit_code);
  void tell(Change change, const Container& container) const;
  void forget_lists();

  const Options options_;
  std::unordered_map<std::string_view, Handler> handlers_;
  std::map<std::string, runtime::v1::PodSandbox> sandboxes_;
  std::map<std::string, Container> containers_;
  std::map<std::string, std::string> names_;  ///< the containers' ids by their names, of which each is there once
  std::uint64_t last_number_ = 0;
  std::uint64_t updates_ = 0;
  bool tells_only_processes_ = false;
  grpc::ByteBuffer container_list_;  ///< not valid: must be made anew
  grpc::ByteBuffer sandbox_list_;
};

}  // namespace topolet::testing
