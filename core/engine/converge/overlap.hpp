// The report of a container on CPUs which another one has alone. Plain values.
#pragma once

#include <chrono>
#include <string>

#include "core/base/index_set.hpp"

namespace topolet::engine {

/// A container runs on CPUs that another one has alone.
struct Overlap {
  std::string container;  ///< as display_name() says it
  std::string owner;      ///< who has the CPUs alone
  CpuSet cpus;
  std::chrono::milliseconds seen_for{};
};

}  // namespace topolet::engine
