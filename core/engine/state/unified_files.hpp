// Which files of a container's cgroup v2 the runtime is told to write.
#pragma once

#include "core/base/shared_string_map.hpp"
#include "core/engine/state/allocation.hpp"

namespace topolet::engine {

/// Returns the files with others in place of those of the same name.
SharedStringMap with_files(const SharedStringMap& files, const SharedStringMap& others);

/// Returns those that policies have set, and the part of the memory left over that the container has, but for those
/// that the kubelet sets itself, those of policies where the container was found, as the kubelet may have set them, and
/// a memory.high above the memory limit, which a resize may have lowered.
SharedStringMap unified_to_tell(const Allocation& allocation);

}  // namespace topolet::engine
