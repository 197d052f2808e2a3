// What a configuration says of the state database. Plain values.
#pragma once

#include <chrono>
#include <cstdint>

namespace topolet::store {

enum class Durability : std::uint8_t { kNormal, kFull };

/// How much of the history is kept. A decision is deleted only when its end is older than that.
struct RetentionLimits {
  std::chrono::milliseconds keep{0};  ///< since its end; 0: for ever
  std::int64_t keep_bytes = 0;        ///< of the file and its log, as far as they are in use; 0: any number
};

}  // namespace topolet::store
