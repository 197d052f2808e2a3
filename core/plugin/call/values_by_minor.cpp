#include "core/plugin/call/values_by_minor.hpp"

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>

#include <algorithm>

namespace topolet::plugin {
namespace {

constexpr std::int32_t kFlagBits = 32;

constexpr ValuesByMinor values_of_this_host() {
  using enum AbiValues;
  ValuesByMinor values(TOPOLET_ABI_MINOR);

  values.add(kAsks, 0, TOPOLET_ASKS_CREATE, TOPOLET_ASKS_UPDATE, TOPOLET_ASKS_SANDBOX, TOPOLET_ASKS_UNPLACED);
  values.show_instead(kAsks, TOPOLET_ASKS_UPDATE);

  values.add(kCacheKind, 0, TOPOLET_CACHE_UNIFIED, TOPOLET_CACHE_DATA, TOPOLET_CACHE_INSTRUCTION);
  values.show_instead(kCacheKind, TOPOLET_CACHE_UNIFIED);

  values.add(kCertainty, 0, TOPOLET_CERTAINTY_TOLD, TOPOLET_CERTAINTY_ESTIMATED, TOPOLET_CERTAINTY_UNKNOWN,
             TOPOLET_CERTAINTY_OF_POD);
  values.show_instead(kCertainty, TOPOLET_CERTAINTY_UNKNOWN);

  values.add(kCpuSource, 0, TOPOLET_CPUS_FROM_POOL, TOPOLET_CPUS_PREFER_ISOLATED, TOPOLET_CPUS_FROM_ISOLATED);
  values.show_instead(kCpuSource, TOPOLET_CPUS_FROM_POOL);

  values.add(kDomainKind, 0, TOPOLET_DOMAIN_NODE, TOPOLET_DOMAIN_DIE, TOPOLET_DOMAIN_PACKAGE, TOPOLET_DOMAIN_MACHINE);
  values.show_instead(kDomainKind, TOPOLET_DOMAIN_MACHINE);

  values.add(kEntryFlags, 0, TOPOLET_ENTRY_PENDING, TOPOLET_ENTRY_STARTED, TOPOLET_ENTRY_ADOPTED);

  values.add(kEventFlags, 0, TOPOLET_EVENT_ADOPTED, TOPOLET_EVENT_EXIT_CODE_UNKNOWN);

  values.add(kEventKind, 0, TOPOLET_EVENT_PLACED, TOPOLET_EVENT_STARTED, TOPOLET_EVENT_MOVED, TOPOLET_EVENT_RESIZED,
             TOPOLET_EVENT_RELEASED, TOPOLET_EVENT_EXITED, TOPOLET_EVENT_POD_REMOVED, TOPOLET_EVENT_DENIED,
             TOPOLET_EVENT_UNPINNED);

  values.add(kMode, 0, TOPOLET_MODE_EXCLUSIVE, TOPOLET_MODE_SHARED, TOPOLET_MODE_RESERVED, TOPOLET_MODE_FOREIGN);
  values.show_instead(kMode, TOPOLET_MODE_FOREIGN);

  values.add(kOccasion, 0, TOPOLET_OCCASION_CREATE, TOPOLET_OCCASION_RESTART, TOPOLET_OCCASION_RESIZE,
             TOPOLET_OCCASION_MOVE, TOPOLET_OCCASION_REPAIR, TOPOLET_OCCASION_ADOPT);
  values.show_instead(kOccasion, TOPOLET_OCCASION_MOVE);

  values.add(kOsDeviceKind, 0, TOPOLET_OS_DEVICE_BLOCK, TOPOLET_OS_DEVICE_GPU, TOPOLET_OS_DEVICE_NETWORK,
             TOPOLET_OS_DEVICE_OPENFABRICS, TOPOLET_OS_DEVICE_DMA, TOPOLET_OS_DEVICE_COPROCESSOR,
             TOPOLET_OS_DEVICE_OTHER);
  values.show_instead(kOsDeviceKind, TOPOLET_OS_DEVICE_OTHER);

  values.add(kPickStage, 0, TOPOLET_PICK_CHOOSE, TOPOLET_PICK_ORDER, TOPOLET_PICK_REVIEW);

  values.add(kPurpose, 0, TOPOLET_PURPOSE_RUN, TOPOLET_PURPOSE_CHECK, TOPOLET_PURPOSE_SIMULATE);
  values.show_instead(kPurpose, TOPOLET_PURPOSE_CHECK);

  values.add(kQos, 0, TOPOLET_QOS_GUARANTEED, TOPOLET_QOS_BURSTABLE, TOPOLET_QOS_BESTEFFORT);
  values.show_instead(kQos, TOPOLET_QOS_BESTEFFORT);

  values.add(kRequestFlags, 0, TOPOLET_REQUEST_MUST_KEEP, TOPOLET_REQUEST_STAYS, TOPOLET_REQUEST_PARTIAL,
             TOPOLET_REQUEST_WHOLE_CORES, TOPOLET_REQUEST_KUBELET_CPUS, TOPOLET_REQUEST_POD_SCOPE,
             TOPOLET_REQUEST_SPREAD_CORES);

  values.add(kWhyShared, 0, TOPOLET_SHARED_NOT, TOPOLET_SHARED_OTHER, TOPOLET_SHARED_ANNOTATED_NONE,
             TOPOLET_SHARED_ANNOTATED_SHARED, TOPOLET_SHARED_BURSTABLE, TOPOLET_SHARED_BESTEFFORT,
             TOPOLET_SHARED_UNKNOWN_DEMAND, TOPOLET_SHARED_FRACTIONAL_REQUEST, TOPOLET_SHARED_NO_REQUEST,
             TOPOLET_SHARED_UNKNOWN_REQUEST, TOPOLET_SHARED_NOTHING_REQUESTED, TOPOLET_SHARED_NO_OWN_REQUEST,
             TOPOLET_SHARED_ONLY_WHOLE_CPUS, TOPOLET_SHARED_RESERVED_NAMESPACE, TOPOLET_SHARED_RULE_NEVER,
             TOPOLET_SHARED_RULE_ANNOTATED, TOPOLET_SHARED_KUBELET_HANDS_OUT_CPUS, TOPOLET_SHARED_ONLY_AT_CREATION,
             TOPOLET_SHARED_NODE_FULL);
  values.show_instead(kWhyShared, TOPOLET_SHARED_OTHER);
  return values;
}

}  // namespace

constinit const ValuesByMinor kValuesByMinor = values_of_this_host();

KnownValues::KnownValues(const ValuesByMinor& table, std::uint32_t minor)
    : table_(&table), minor_(std::min(minor, table.host_minor())) {}

std::int32_t KnownValues::shown(AbiValues of, std::int32_t value) const {
  return has(of, value) ? value : table_->shown_instead(of).value_or(value);
}

std::uint32_t KnownValues::shown_flags(AbiValues of, std::uint32_t flags) const {
  std::uint32_t shown = 0;
  for (std::int32_t bit = 0; bit < kFlagBits; ++bit) {
    if (has(of, bit)) shown |= flags & (1U << bit);
  }
  return shown;
}

std::uint32_t ValueTranslator::shown_flags(AbiValues of, std::uint32_t flags) {
  const std::uint32_t shown = known_.shown_flags(of, flags);
  for (std::int32_t bit = 0; bit < kFlagBits; ++bit) {
    if ((shown >> bit & 1U) != 0) count(known_.first_minor_of(of, bit));
  }
  return shown;
}

}  // namespace topolet::plugin
