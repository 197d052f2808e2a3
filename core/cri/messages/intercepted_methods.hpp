// The one list of what the core wants of the calls that pass.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace topolet::cri {

/// Methods of the runtime service that the core has before they are forwarded.
enum class InterceptedMethod : std::uint8_t {
  kRunPodSandbox,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kStartContainer,
  kStopContainer,
  kRemoveContainer,
  kUpdateContainerResources,
};

struct Interception {
  InterceptedMethod method;
  std::string_view name;
};

inline constexpr std::array kInterceptions{
    Interception{InterceptedMethod::kRunPodSandbox, "RunPodSandbox"},
    Interception{InterceptedMethod::kStopPodSandbox, "StopPodSandbox"},
    Interception{InterceptedMethod::kRemovePodSandbox, "RemovePodSandbox"},
    Interception{InterceptedMethod::kCreateContainer, "CreateContainer"},
    Interception{InterceptedMethod::kStartContainer, "StartContainer"},
    Interception{InterceptedMethod::kStopContainer, "StopContainer"},
    Interception{InterceptedMethod::kRemoveContainer, "RemoveContainer"},
    Interception{InterceptedMethod::kUpdateContainerResources, "UpdateContainerResources"},
};

/// Null for a method that is not intercepted.
constexpr const Interception* find_interception(std::string_view method) {
  for (const Interception& interception : kInterceptions) {
    if (interception.name == method) return &interception;
  }
  return nullptr;
}

/// Methods whose answers tell of containers that are over.
inline constexpr std::array<std::string_view, 4> kObservedMethods{"ListContainers", "StreamContainers",
                                                                  "ContainerStatus", "GetContainerEvents"};

/// As ProxyHooks has them.
inline std::set<std::string, std::less<>> intercepted_names() {
  std::set<std::string, std::less<>> names;
  for (const Interception& interception : kInterceptions) names.emplace(interception.name);
  return names;
}
inline std::set<std::string, std::less<>> observed_names() {
  return {kObservedMethods.begin(), kObservedMethods.end()};
}

}  // namespace topolet::cri
