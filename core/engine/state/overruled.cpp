#include "core/engine/state/overruled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

AuditEntry overruled_audit(std::string reason, const char* code) {
  AuditEntry audit{AuditEvent::kOverruled, std::move(reason)};
  audit.reason_code = code;
  return audit;
}

AuditEntry overruled_began(const Allocation& allocation, const CpuSet& seen_on) {
  return overruled_audit(
      fmt::format("something else than topolet sets its CPUs: the kernel has it on {} instead of {}, which the runtime "
                  "had taken; they are set again, at most every 10 s",
                  named("CPU", seen_on), allocation.placement.cpus.to_string()),
      placement::reason_code::kOverruledBegan);
}

}  // namespace

AuditEntry overruled_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now) {
  const auto lasted = std::chrono::duration_cast<std::chrono::seconds>(now - allocation.overruled->since);
  return overruled_audit(
      fmt::format("over: {}; it was overruled for {} s", why, std::max<std::int64_t>(0, lasted.count())),
      placement::reason_code::kOverruledEnded);
}

std::optional<AuditEntry> note_seen(Allocation& allocation, const event::SeenInKernel& seen,
                                    std::chrono::milliseconds now) {
  allocation.seen_on = seen.is_ours ? CpuSet() : seen.cpus;
  if (seen.is_repaired) {
    const bool is_long_ago = allocation.hand && now - allocation.hand->repaired_at >= kHandForgotten;
    allocation.hand = Hand{now, allocation.hand && !is_long_ago ? allocation.hand->repairs + 1 : 1};
  }
  std::optional<Overruled>& overruled = allocation.overruled;
  if (!overruled) {
    if (!seen.is_overruled) return std::nullopt;
    overruled = Overruled{now, {}, seen.cpus};
    return overruled_began(allocation, seen.cpus);
  }
  if (!seen.is_ours) {
    overruled->ours_since = {};
    overruled->cpus = seen.cpus;
  } else if (overruled->ours_since.count() == 0) {
    overruled->ours_since = now;
  } else if (now - overruled->ours_since >= kOverruledLinger) {
    AuditEntry ended = overruled_ended(allocation, "the kernel has shown its CPUs for a minute", now);
    overruled.reset();
    return ended;
  }
  return std::nullopt;
}

}  // namespace topolet::engine
