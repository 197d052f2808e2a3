// The CRI's requests as a runtime tells them to an NRI plugin, and the plugin's answers as the CRI's. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/cri/messages/lens.pb.h"
#include "core/operations/operation.hpp"

namespace topolet::simulate {

/// NRI's event RunPodSandbox.
std::string nri_run_pod(const lens::RunPodSandboxRequest& request, const std::string& sandbox_id);
/// NRI's event CreateContainer. It has neither the attempt nor the container's own annotations.
std::string nri_create(const lens::CreateContainerRequest& request, const std::string& container_id,
                       const std::string& runtime_handler);
/// NRI's event UpdateContainer, in which 0 stands for what is not to be changed.
std::string nri_update(const lens::UpdateContainerResourcesRequest& request);

/// The answer to a create: what is to be appended to the CRI's request, and who else is to be updated.
struct NriCreateAnswer {
  std::string patch;  ///< empty: it is created as it was asked for
  std::vector<operations::NeighbourUpdate> neighbours;
};
NriCreateAnswer read_nri_create_answer(const std::string& answer);

/// Returns what is to be appended to the CRI's request for an update; empty: it is done as it was asked for.
std::string patch_of_nri_update_answer(const std::string& answer);

}  // namespace topolet::simulate
