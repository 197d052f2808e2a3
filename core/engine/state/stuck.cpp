#include "core/engine/state/stuck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

/// The kept length of a runtime's message: it may repeat anything that a container sends it.
constexpr std::size_t kLongestWhy = 300;

std::chrono::milliseconds pause_after(std::uint32_t trials) {
  return std::min<std::chrono::milliseconds>(kFirstTrial * (1 << std::min(trials, 10U)), kLongestTrial);
}

}  // namespace

std::optional<AuditEntry> note_stuck(Allocation& allocation, const event::FoundStuck& found,
                                     std::chrono::milliseconds now) {
  const std::string why = printable(found.why, kLongestWhy);
  if (!allocation.stuck) {
    allocation.stuck = Stuck{found.cpus, why, now, now + pause_after(0), 0};
    return audit_with_code(AuditEvent::kStuck,
                           fmt::format("it does not leave {}: {}; nobody else is given these CPUs alone until it does",
                                       named("CPU", found.cpus), why),
                           placement::reason_code::kStuckBegan);
  }
  Stuck& stuck = *allocation.stuck;
  stuck.cpus |= found.cpus;
  stuck.why = why;
  if (now < stuck.next_trial) return std::nullopt;
  ++stuck.trials;
  stuck.next_trial = now + pause_after(stuck.trials);
  return std::nullopt;
}

AuditEntry stuck_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now) {
  const auto lasted = std::chrono::duration_cast<std::chrono::seconds>(now - allocation.stuck->since);
  return audit_with_code(
      AuditEvent::kStuck,
      fmt::format("over: {}; it could not be moved for {} s", why, std::max<std::int64_t>(0, lasted.count())),
      placement::reason_code::kStuckEnded);
}

}  // namespace topolet::engine
