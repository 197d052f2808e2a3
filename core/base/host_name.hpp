// The name of this machine.
#pragma once

#include <string>

namespace topolet {

/// The name of this host in lower case, as Kubernetes names its Node unless the kubelet is told another name; empty if
/// the kernel does not tell it.
std::string host_name_in_lower_case();

}  // namespace topolet
