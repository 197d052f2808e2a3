// How much is for BestEffort containers, as the option of a plugin says. Plain values.
#pragma once

#include <cstdint>
#include <optional>

namespace topolet::placement {

/// In percent; none: they yield to nobody.
struct BestEffortShare {
  std::optional<std::uint32_t> cpus = {};  ///< of what the pool can do, with those whom they yield to
  /// Of the time: a container that waits for a CPU for so long has those yield that run beside it.
  std::optional<std::uint32_t> pressure = {};
  std::optional<std::uint32_t> memory = {};  ///< of the machine's memory, with those whom they yield to

  friend bool operator==(const BestEffortShare&, const BestEffortShare&) = default;
};

}  // namespace topolet::placement
