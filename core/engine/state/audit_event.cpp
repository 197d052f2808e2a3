#include "core/engine/state/audit_event.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace topolet::engine {
namespace {

constexpr std::array<std::pair<AuditEvent, std::string_view>, 23> kWords{{
    {AuditEvent::kPlaced, "placed"},
    {AuditEvent::kUnpinned, "unpinned"},
    {AuditEvent::kDenied, "denied"},
    {AuditEvent::kReplaced, "re-placed"},
    {AuditEvent::kSqueezed, "squeezed"},
    {AuditEvent::kResized, "resized"},
    {AuditEvent::kAdopted, "adopted"},
    {AuditEvent::kForeign, "foreign"},
    {AuditEvent::kConflict, "conflict"},
    {AuditEvent::kDrift, "drift"},
    {AuditEvent::kOverruled, "overruled"},
    {AuditEvent::kStuck, "stuck"},
    {AuditEvent::kOverlap, "overlap"},
    {AuditEvent::kGap, "gap"},
    {AuditEvent::kQuarantined, "quarantined"},
    {AuditEvent::kQuarantineEnded, "quarantine-ended"},
    {AuditEvent::kRecordedAgain, "recorded-again"},
    {AuditEvent::kStoreChecked, "store-checked"},
    {AuditEvent::kStoreDamaged, "store-damaged"},
    {AuditEvent::kKubeletStatic, "kubelet-static"},
    {AuditEvent::kWidened, "widened"},
    {AuditEvent::kNarrowed, "narrowed"},
    {AuditEvent::kCapacity, "capacity"},
}};

}  // namespace

std::string_view to_string(AuditEvent event) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [event](const auto& entry) { return entry.first == event; });
  return found == kWords.end() ? std::string_view() : found->second;
}

std::optional<AuditEvent> audit_event_from(std::string_view word) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [word](const auto& entry) { return entry.second == word; });
  if (found == kWords.end()) return std::nullopt;
  return found->first;
}

std::vector<std::string> audit_event_words() {
  std::vector<std::string> words;
  for (const auto& entry : kWords) words.emplace_back(entry.second);
  return words;
}

}  // namespace topolet::engine
