// A kubelet that a test tells what to ask, over any unix socket, and that waits for each answer: for tests of the
// daemon's core, of whole programs, and with real runtimes. One that acts by itself, in virtual time, is
// tests/engine/random_kubelet.hpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "tests/support/cri.grpc.pb.h"

namespace topolet::integration {

namespace cri = ::runtime::v1;

/// The resources of a container, as a pod's author writes them. The QoS class follows by the kubelet's rules.
struct Resources {
  std::int64_t cpu_request_milli = 0;
  std::int64_t cpu_limit_milli = 0;
  std::int64_t memory_request_bytes = 0;
  std::int64_t memory_limit_bytes = 0;

  bool is_guaranteed() const;
  bool is_besteffort() const;
  std::string qos() const;  ///< "guaranteed", "burstable" or "besteffort"
};

Resources guaranteed(std::int64_t cpu_milli, std::int64_t memory_bytes);
Resources burstable(std::int64_t cpu_request_milli, std::int64_t memory_request_bytes);
Resources besteffort();

/// The numbers the kubelet makes of them: shares, quota, memory limit and oom_score_adj.
cri::LinuxContainerResources as_the_kubelet_sends(const Resources& resources);

/// How the pods' cgroups are named: /ROOT/kubepods/burstable/pod…, or the same as systemd slices.
struct CgroupNaming {
  std::string root = "/";  ///< "/", or one level above kubepods such as "/topolet.x"
  bool systemd = false;
};

struct Pod {
  std::string name;
  std::string uid;
  Resources resources;
  CgroupNaming cgroups;
  std::map<std::string, std::string> labels;
  std::string sandbox_id;  ///< empty until it runs
  std::map<std::string, std::string> annotations = {};
  std::string name_space = "topolet-test";
  std::string runtime_handler = {};
  bool tells_resources = true;  ///< those of the whole pod

  std::string cgroup_parent() const;
};

struct ContainerSpec {
  std::string name = "main";
  std::uint32_t attempt = 0;
  std::string image = {};
  std::vector<std::string> command = {};    ///< empty = the image's own
  std::vector<std::string> devices = {};    ///< of the host, at the same path inside
  std::optional<Resources> resources = {};  ///< none: those of its pod
  std::string cpuset_cpus = {};             ///< that the kubelet gives it, as are these
  std::string cpuset_mems = {};
  std::map<std::string, std::string> annotations = {};
  std::map<std::string, std::string> env = {};
};

struct Container {
  std::string id;
  cri::ContainerState state = cri::CONTAINER_UNKNOWN;
  int exit_code = 0;
  pid_t pid = 0;     ///< on the host; 0 while it does not run
  std::string info;  ///< the runtime's verbose answer: JSON
};

struct ExecOutput {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Makes the request that creates a container.
cri::CreateContainerRequest create_request(const Pod& pod, const ContainerSpec& spec);

/// As the server sent it.
inline grpc::Status as_grpc(const Status& status) {
  if (status) return {};
  return {static_cast<grpc::StatusCode>(status.error().code), status.error().message};
}

/// Any thread may call any function. Every call ends within `deadline`, the client's own if none is given, with the
/// server's status.
class CriClient {
 public:
  explicit CriClient(const std::string& endpoint, std::chrono::seconds deadline = std::chrono::seconds(120));

  Result<cri::VersionResponse> version();
  Result<bool> has_image(const std::string& reference);
  /// Returns true if the runtime makes its cgroups through systemd; false if it does not say.
  Result<bool> uses_systemd_cgroups();

  Status run(Pod& pod);
  Status stop(const Pod& pod);
  Status remove(const Pod& pod);
  Result<std::vector<cri::PodSandbox>> pods(const std::map<std::string, std::string>& labels = {});

  Result<std::string> create(const Pod& pod, const ContainerSpec& spec);
  /// The same with a request of the test's own.
  Result<std::string> create(const cri::CreateContainerRequest& request);
  Status start(const std::string& container_id, std::optional<std::chrono::milliseconds> deadline = std::nullopt);
  /// These end when their context says so, and may be cancelled by it.
  Result<std::string> create(const cri::CreateContainerRequest& request, grpc::ClientContext& context);
  Status start(const std::string& container_id, grpc::ClientContext& context);
  Status stop(const std::string& container_id, std::chrono::seconds grace = std::chrono::seconds(5));
  Status remove(const std::string& container_id);
  Status update(const std::string& container_id, const cri::LinuxContainerResources& resources);
  Result<Container> inspect(const std::string& container_id);
  Result<ExecOutput> exec(const std::string& container_id, const std::vector<std::string>& command);
  Result<std::vector<cri::Container>> containers(const std::string& sandbox_id = {});

  Status stop_sandbox(const std::string& sandbox_id);
  Status remove_sandbox(const std::string& sandbox_id);

 private:
  template <class Stub, class Request, class Response>
  Status call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request, Response& response,
              std::optional<std::chrono::milliseconds> deadline = std::nullopt);
  void set_deadline(grpc::ClientContext& context, std::optional<std::chrono::milliseconds> deadline) const;

  std::chrono::seconds deadline_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<cri::RuntimeService::Stub> runtime_;
  std::unique_ptr<cri::ImageService::Stub> images_;
};

}  // namespace topolet::integration
