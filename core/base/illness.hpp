// Conditions of a node that need attention: named once, and shown the same way by the command, the page and the
// metrics.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace topolet {

enum class Severity : std::uint8_t {
  kNotice,    ///< topolet mends it itself, or it is as somebody has set it
  kWarning,   ///< somebody should look at it
  kCritical,  ///< no pod can start
};

constexpr std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kNotice:
      return "notice";
    case Severity::kWarning:
      return "warning";
    case Severity::kCritical:
      return "critical";
  }
  return "";
}

/// Returns the severity with that name; an unknown word counts as a warning.
constexpr Severity severity_from(std::string_view word) {
  if (word == to_string(Severity::kNotice)) return Severity::kNotice;
  return word == to_string(Severity::kCritical) ? Severity::kCritical : Severity::kWarning;
}

/// A plain value.
struct Illness {
  std::string code;  ///< one of those below
  Severity severity = Severity::kWarning;
  std::string subject;                ///< whom it is about: "plugin numa", NAMESPACE/POD/CONTAINER, a path
  std::string sentence;               ///< what is the matter, and what to do where that is not plain
  std::chrono::milliseconds since{};  ///< wall clock; 0: not known
  std::uint32_t count = 1;            ///< more for one that stands for others of its code

  friend bool operator==(const Illness&, const Illness&) = default;
};

constexpr bool needs_somebody(Severity severity) { return severity != Severity::kNotice; }

/// They are a public interface: README.md lists them.
namespace illness {

inline constexpr const char* kRuntimeUnreachable = "runtime-unreachable";
inline constexpr const char* kNotReconciled = "not-reconciled";
inline constexpr const char* kEngineBusy = "engine-busy";
inline constexpr const char* kStoreDegraded = "store-degraded";
inline constexpr const char* kStoreDamaged = "store-damaged";
inline constexpr const char* kStoreReopened = "store-reopened";
inline constexpr const char* kConfigurationRejected = "configuration-rejected";
inline constexpr const char* kRestartNeeded = "restart-needed";
inline constexpr const char* kWatchUnavailable = "watch-unavailable";
inline constexpr const char* kPluginQuarantined = "plugin-quarantined";
inline constexpr const char* kPluginOnTrial = "plugin-on-trial";
inline constexpr const char* kPluginStuck = "plugin-stuck";
inline constexpr const char* kPluginCrashed = "plugin-crashed";
inline constexpr const char* kPluginLate = "plugin-late";
inline constexpr const char* kPluginFailing = "plugin-failing";
inline constexpr const char* kDenied = "denied";
inline constexpr const char* kOverruled = "overruled";
inline constexpr const char* kStuck = "stuck";
inline constexpr const char* kOverlap = "overlap";
inline constexpr const char* kSqueezed = "squeezed";
inline constexpr const char* kLeftToKernel = "left-to-kernel";
inline constexpr const char* kWaiting = "waiting";
inline constexpr const char* kDrifted = "drifted";
inline constexpr const char* kConflict = "conflict";
inline constexpr const char* kInDoubt = "in-doubt";
inline constexpr const char* kForeign = "foreign";
inline constexpr const char* kUnconfined = "unconfined";
inline constexpr const char* kQuotaKept = "quota-kept";
inline constexpr const char* kCapacityLow = "capacity-low";
inline constexpr const char* kFilesRefused = "files-refused";
// The only illness that topolet-agent reports by itself.
inline constexpr const char* kTopoletdUnreachable = "topoletd-unreachable";
inline constexpr const char* kMayNotPublish = "may-not-publish";
inline constexpr const char* kNotPublished = "not-published";
inline constexpr const char* kOtherWriter = "other-writer";
inline constexpr const char* kDevicesUnknown = "devices-unknown";
inline constexpr const char* kTokenNotRenewed = "token-not-renewed";
inline constexpr const char* kKubeletStatic = "kubelet-static";
inline constexpr const char* kNodeName = "node-name";
inline constexpr const char* kZoneAnnotation = "zone-annotation";

inline constexpr std::array kAll = {kRuntimeUnreachable,
                                    kNotReconciled,
                                    kEngineBusy,
                                    kStoreDegraded,
                                    kStoreDamaged,
                                    kStoreReopened,
                                    kRestartNeeded,
                                    kWatchUnavailable,
                                    kPluginQuarantined,
                                    kPluginOnTrial,
                                    kPluginStuck,
                                    kPluginCrashed,
                                    kPluginLate,
                                    kPluginFailing,
                                    kDenied,
                                    kOverruled,
                                    kStuck,
                                    kOverlap,
                                    kSqueezed,
                                    kLeftToKernel,
                                    kWaiting,
                                    kDrifted,
                                    kConflict,
                                    kInDoubt,
                                    kForeign,
                                    kUnconfined,
                                    kQuotaKept,
                                    kCapacityLow,
                                    kFilesRefused,
                                    kTopoletdUnreachable,
                                    kMayNotPublish,
                                    kNotPublished,
                                    kOtherWriter,
                                    kDevicesUnknown,
                                    kTokenNotRenewed,
                                    kKubeletStatic,
                                    kNodeName,
                                    kZoneAnnotation,
                                    kConfigurationRejected};

}  // namespace illness

}  // namespace topolet
