// The words of the audit's column `event` (table `decided`). They are public: store/README.md lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::engine {

enum class AuditEvent : std::uint8_t {
  kPlaced,
  kUnpinned,  ///< placed without the policies' word
  kDenied,
  kReplaced,
  kSqueezed,  ///< CPUs are gone, and it could not be placed as it should be
  kResized,
  kAdopted,
  kForeign,
  kConflict,
  kDrift,
  kOverruled,  ///< another hand than topolet's sets its CPUs, or does not any more
  kStuck,      ///< it does not leave CPUs that it was told to leave, or does by now
  kOverlap,    ///< it runs on CPUs that another container has alone, or does not any more
  kGap,
  kQuarantined,
  kQuarantineEnded,
  kRecordedAgain,  ///< in a new database, as the one before was lost
  kStoreChecked,
  kStoreDamaged,
  kKubeletStatic,  ///< whether the kubelet hands out CPUs itself
  kWidened,        ///< shared: it may run on CPUs beside those of its nodes, too
  kNarrowed,       ///< it may not any more
  kCapacity,       ///< what is told of a NUMA node's capacity, or what follows from it
};

std::string_view to_string(AuditEvent event);  // "placed", "re-placed", "quarantine-ended"…
std::optional<AuditEvent> audit_event_from(std::string_view word);
std::vector<std::string> audit_event_words();

}  // namespace topolet::engine
