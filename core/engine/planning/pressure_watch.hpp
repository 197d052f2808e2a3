// Which containers that share CPUs have waited for some for so long that others have to give way.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/engine/state/ledger.hpp"
#include "core/load/load.hpp"

namespace topolet::engine {

/// For so long a container has to wait for CPUs, at each look, before others give way.
constexpr std::chrono::seconds kWaitsBeforeOthersYield{30};
/// For so long after the last such wait nobody gets back what was given up for it.
constexpr std::chrono::minutes kPressureRemembered{5};

/// A container that lacks CPUs.
struct Pressed {
  std::string container;       ///< as display_name() says it
  std::uint32_t permille = 0;  ///< of the time that it waits for a CPU, as was measured last
  CpuSet cpus;                 ///< that it may run on
};

/// Of the pool's containers that do not yield(). One that its own quota holds back waits for nobody else. Not
/// synchronised.
class PressureWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// To be called about once a second. `load` may be null. `least_permille`: none where nothing follows from waiting.
  void note(const Ledger& ledger, const load::Load* load, std::optional<std::uint32_t> least_permille, Time now);
  /// Returns the one of those that have waited for long enough that waits most; nothing if there is none.
  const std::optional<Pressed>& pressed() const { return pressed_; }
  /// There was one not long ago.
  bool is_remembered(Time now) const { return last_pressed_ && now - *last_pressed_ < kPressureRemembered; }

 private:
  std::map<placement::ContainerKey, Time> waits_since_;
  std::optional<Pressed> pressed_;
  std::optional<Time> last_pressed_;
};

}  // namespace topolet::engine
