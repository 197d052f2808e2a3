// What one pass of healing has done, or would do. Plain values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"

namespace topolet::engine {

struct HealReport {
  struct Moved {
    std::string container;  ///< as display_name() says it
    CpuSet from;
    CpuSet to;
    NodeSet from_nodes;
    NodeSet to_nodes;
    std::string reason;
  };
  /// A container for which there seemed to be a better place.
  struct Left {
    std::string container;  ///< as display_name() says it
    std::string why;        ///< it stays
  };
  std::vector<Moved> moved;  ///< in the order in which they move
  std::vector<Left> left;    ///< by name
};

using OnHealed = std::function<void(const Result<HealReport>&)>;

}  // namespace topolet::engine
