#include "core/cri/methods.hpp"

#include <algorithm>
#include <array>

namespace topolet::cri {
namespace {

// An unknown method may stream, and a stream breaks on the unary path, so only names that are known to be unary are
// listed. The list serves both versions: what v1alpha2 lacks is refused by the runtime, not here.
constexpr std::array<std::string_view, 31> kUnaryRuntimeMethods = {
    "Attach",
    "CheckpointContainer",
    "CheckpointPod",
    "ContainerStats",
    "ContainerStatus",
    "CreateContainer",
    "Exec",
    "ExecSync",
    "ListContainerStats",
    "ListContainers",
    "ListMetricDescriptors",
    "ListPodSandbox",
    "ListPodSandboxMetrics",
    "ListPodSandboxStats",
    "PodSandboxStats",
    "PodSandboxStatus",
    "PortForward",
    "RemoveContainer",
    "RemovePodSandbox",
    "ReopenContainerLog",
    "RestorePod",
    "RunPodSandbox",
    "RuntimeConfig",
    "StartContainer",
    "Status",
    "StopContainer",
    "StopPodSandbox",
    "UpdateContainerResources",
    "UpdatePodSandboxResources",
    "UpdateRuntimeConfig",
    "Version",
};
constexpr std::array<std::string_view, 5> kUnaryImageMethods = {"ImageFsInfo", "ImageStatus", "ListImages", "PullImage",
                                                                "RemoveImage"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

bool is_image_service(std::string_view service) {
  constexpr std::string_view kPrefix = "runtime.v";
  constexpr std::string_view kSuffix = ".ImageService";
  return service.starts_with(kPrefix) && service.ends_with(kSuffix) && service.size() > kPrefix.size() + kSuffix.size();
}

bool is_known_version(std::string_view service) {
  return service.starts_with("runtime.v1.") || service.starts_with("runtime.v1alpha2.");
}

}  // namespace

Method parse_method(std::string_view path) {
  const auto slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0) return {};
  Method method;
  method.service = path.substr(1, slash - 1);
  method.name = path.substr(slash + 1);
  method.runtime_service =
      method.service == "runtime.v1.RuntimeService" || method.service == "runtime.v1alpha2.RuntimeService";
  method.endless = method.runtime_service && method.name == "GetContainerEvents";
  method.image_service = is_image_service(method.service);
  method.known_unary =
      (method.runtime_service && contains(kUnaryRuntimeMethods, method.name)) ||
      (method.image_service && is_known_version(method.service) && contains(kUnaryImageMethods, method.name));
  return method;
}

}  // namespace topolet::cri
