// Where the collections are that the agent reads and writes.
#pragma once

#include <string>

#include "cluster/agent/kubernetes/zones.hpp"

namespace topolet::agent {

inline const std::string kNodes = "/api/v1/nodes";
inline const std::string kPods = "/api/v1/pods";
inline const std::string kEvents = "/api/v1/events";
inline const std::string kTopologies = kTopologyPath;

}  // namespace topolet::agent
