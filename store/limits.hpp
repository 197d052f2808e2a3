// The configuration of the state database, as plain values.
#pragma once

#include <chrono>
#include <cstdint>

namespace topolet::store {

enum class Durability : std::uint8_t { kNormal, kFull };

/// The limits of the history. A decision is deleted only when its end is older than `keep`.
struct RetentionLimits {
  std::chrono::milliseconds keep{0};  ///< since its end; 0: for ever
  std::int64_t keep_bytes = 0;        ///< of the file and its log, as far as they are in use; 0: any number
};

}  // namespace topolet::store
