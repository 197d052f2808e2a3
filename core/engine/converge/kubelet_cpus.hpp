// The CPUs that a kubelet gave to containers before topolet placed them.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::engine {

/// Exclusive ones, by the pod's uid and the container's name.
using KubeletCpus = std::map<std::pair<std::string, std::string>, CpuSet>;

}  // namespace topolet::engine
