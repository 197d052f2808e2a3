// A container runtime for the core's tests: a real server on a real socket with pods and containers that exist only as
// rows, complete enough for topolet, and able to fail in the ways a runtime can.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.hpp"
#include "tests/support/cri.pb.h"
#include "tests/support/recording_runtime.hpp"

namespace topolet::testing {

class SmallRuntime {
 public:
  struct Row {
    std::string sandbox_id;
    runtime::v1::ContainerConfig config;
    std::string cpus;  ///< what the runtime spec has now
    runtime::v1::ContainerState state = runtime::v1::CONTAINER_CREATED;
    std::vector<std::string> ran_on;  ///< every set it had while it ran
    std::string mems = {};            ///< what the runtime spec has now
    std::int32_t exit_code = 0;
  };
  /// What becomes of the next create.
  enum class Fate { kMade, kRefused, kCreatedAnswerLost, kNotCreatedAnswerLost };

  explicit SmallRuntime(const std::string& socket_path);
  ~SmallRuntime() { release(); }
  SmallRuntime(const SmallRuntime&) = delete;
  SmallRuntime& operator=(const SmallRuntime&) = delete;

  RecordingRuntime& recorder() { return recorder_; }

  void next_create(Fate fate);
  /// Creates and updates arrive but are not answered until release().
  void hold(const std::string& method);
  void release();
  void fail_updates(bool fail);

  Row row(const std::string& container_id) const;
  std::vector<std::string> ids() const;
  void exit(const std::string& container_id, std::int32_t code = 0);
  void forget(const std::string& container_id);
  /// Somebody makes a pod with a container without topolet.
  std::string make(const std::string& pod, const std::string& cpus);
  /// Somebody changes a container without topolet.
  void set_cpus(const std::string& container_id, const std::string& cpus);

 private:
  using Handler = RecordingRuntime::Handler;
  template <class Request, class Response>
  void serve(const std::string& method, grpc::Status (SmallRuntime::*handle)(const Request&, Response&));
  void wait_while_held(const std::string& method);

  grpc::Status run_pod(const runtime::v1::RunPodSandboxRequest& request, runtime::v1::RunPodSandboxResponse& response)
      TOPOLET_REQUIRES(mutex_);
  grpc::Status stop_pod(const runtime::v1::StopPodSandboxRequest& request,
                        runtime::v1::StopPodSandboxResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status remove_pod(const runtime::v1::RemovePodSandboxRequest& request,
                          runtime::v1::RemovePodSandboxResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status list_pods(const runtime::v1::ListPodSandboxRequest& request,
                         runtime::v1::ListPodSandboxResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status create(const runtime::v1::CreateContainerRequest& request,
                      runtime::v1::CreateContainerResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status start(const runtime::v1::StartContainerRequest& request, runtime::v1::StartContainerResponse& response)
      TOPOLET_REQUIRES(mutex_);
  grpc::Status stop(const runtime::v1::StopContainerRequest& request, runtime::v1::StopContainerResponse& response)
      TOPOLET_REQUIRES(mutex_);
  grpc::Status remove(const runtime::v1::RemoveContainerRequest& request,
                      runtime::v1::RemoveContainerResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status update(const runtime::v1::UpdateContainerResourcesRequest& request,
                      runtime::v1::UpdateContainerResourcesResponse& response) TOPOLET_REQUIRES(mutex_);
  grpc::Status list(const runtime::v1::ListContainersRequest& request, runtime::v1::ListContainersResponse& response)
      TOPOLET_REQUIRES(mutex_);
  grpc::Status status(const runtime::v1::ContainerStatusRequest& request,
                      runtime::v1::ContainerStatusResponse& response) TOPOLET_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar released_;
  std::string held_ TOPOLET_GUARDED_BY(mutex_);
  Fate next_ TOPOLET_GUARDED_BY(mutex_) = Fate::kMade;
  bool fail_updates_ TOPOLET_GUARDED_BY(mutex_) = false;
  int last_number_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Row> rows_ TOPOLET_GUARDED_BY(mutex_);
  std::map<std::string, runtime::v1::PodSandbox> pods_ TOPOLET_GUARDED_BY(mutex_);
  RecordingRuntime recorder_;  // last: its threads use what is above
};

}  // namespace topolet::testing
