// What is looked for in the answers to ContainerStatus that the kubelet gets.
#pragma once

#include <string>

#include "core/cri/call.hpp"

namespace topolet::cri {

/// The container that the answer tells the resources of; empty for any other answer, and where it tells none.
std::string read_status_with_resources(const ObservedMessage& answer);

}  // namespace topolet::cri
