#include "core/cri/socket/memory_claims.hpp"

#include <algorithm>

namespace topolet::cri {
namespace {

/// Twice as long as a guard takes at the most to tell again: one that does not must not keep the others from acting.
constexpr std::chrono::seconds kCounts{1};

}  // namespace

void MemoryClaims::tell(const void* guard, const Claim& claim, Time now) {
  MutexLock lock(mutex_);
  told_[guard] = {claim, now};
}

void MemoryClaims::forget(const void* guard) {
  MutexLock lock(mutex_);
  told_.erase(guard);
}

MemoryClaims::Claim MemoryClaims::of_others(const void* guard, Time now) const {
  MutexLock lock(mutex_);
  Claim others;
  for (const auto& [who, told] : told_) {
    if (who == guard || now - told.at > kCounts) continue;
    others.heaviest = std::max(others.heaviest, told.claim.heaviest);
    others.freed_lately += told.claim.freed_lately;
  }
  return others;
}

}  // namespace topolet::cri
