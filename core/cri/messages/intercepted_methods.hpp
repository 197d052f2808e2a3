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
  bool needs_ledger;  ///< it waits until the ledger has been compared with the runtime once
};

inline constexpr std::array kInterceptions{
    Interception{InterceptedMethod::kRunPodSandbox, "RunPodSandbox", false},
    Interception{InterceptedMethod::kStopPodSandbox, "StopPodSandbox", false},
    Interception{InterceptedMethod::kRemovePodSandbox, "RemovePodSandbox", false},
    Interception{InterceptedMethod::kCreateContainer, "CreateContainer", true},
    Interception{InterceptedMethod::kStartContainer, "StartContainer", true},
    Interception{InterceptedMethod::kStopContainer, "StopContainer", false},
    Interception{InterceptedMethod::kRemoveContainer, "RemoveContainer", false},
    Interception{InterceptedMethod::kUpdateContainerResources, "UpdateContainerResources", true},
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
