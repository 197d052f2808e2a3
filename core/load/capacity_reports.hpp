// When what the CPUs of a NUMA node can do has changed by so much that others should know.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/load/sampler.hpp"

namespace topolet::load {

/// A capacity that is told once is told again every minute: it is not believed for long.
inline constexpr std::chrono::seconds kCapacityToldEvery{60};

/// Says what is to be told: nothing before there have been measurements for kSettled; a capacity that differs from what
/// was told last by 5 % of nominal, at most every 30 s; and the same again while it is below nominal. Not synchronised.
class CapacityReports {
 public:
  struct Report {
    std::uint32_t node = 0;                  ///< OS index
    std::optional<std::int64_t> milli = {};  ///< none: nominal again

    friend bool operator==(const Report&, const Report&) = default;
  };

  std::vector<Report> due(const Sample& sample, const std::map<std::uint32_t, CpuSet>& nodes);

 private:
  struct Told {
    std::int64_t milli = 0;
    std::chrono::steady_clock::time_point at;
    bool is_nominal = true;
  };
  std::map<std::uint32_t, Told> told_;  ///< by node
};

}  // namespace topolet::load
