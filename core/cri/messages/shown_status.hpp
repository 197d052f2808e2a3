// The CFS quotas of containers in answers that tell the kubelet their status.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/cri/call.hpp"
#include "core/operations/demand.hpp"

namespace topolet::cri {

/// Methods whose answers tell the status of containers, with their resources. A kubelet with the feature gate
/// EventedPLEG reads them from all three, any other from ContainerStatus.
inline constexpr std::array<std::string_view, 3> kStatusMethods{"ContainerStatus", "PodSandboxStatus",
                                                                "GetContainerEvents"};

/// As ProxyHooks has them.
inline std::set<std::string, std::less<>> status_names() { return {kStatusMethods.begin(), kStatusMethods.end()}; }

/// By the id of the container; none where it is to be shown what the runtime tells.
using QuotaToShow = std::function<std::optional<operations::CfsQuota>(const std::string& container_id)>;

/// The answer with other quotas, all else byte by byte as it came; none where none is another. Where an answer tells no
/// resources of a container it is left so: the kubelet would take the rest for none.
std::optional<std::string> with_shown_quotas(const ObservedMessage& answer, const QuotaToShow& quota_of);

}  // namespace topolet::cri
