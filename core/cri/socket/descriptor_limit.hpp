// The number of descriptors that the process may have open.
#pragma once

#include <cstddef>

#include "core/base/log_fwd.hpp"

namespace topolet::cri {

/// Raises the process's soft limit to its hard one, and returns how many of `connections` can be served within that:
/// each takes two descriptors, and some are kept back for everything else. Warns if that is fewer.
std::size_t limit_connections(std::size_t connections, Log& log);

}  // namespace topolet::cri
