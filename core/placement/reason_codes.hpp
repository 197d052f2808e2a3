// The codes that stand beside the reasons of decisions, for programs. They are a public interface: store/README.md
// documents them.
#pragma once

namespace topolet::placement::reason_code {

// Reasons for denying a container.
inline constexpr const char* kTooFewFreeCpus = "too-few-free-cpus";
inline constexpr const char* kTooFewIsolatedCpus = "too-few-isolated-cpus";
inline constexpr const char* kNoSharedCpu = "no-shared-cpu";
inline constexpr const char* kPluginRejected = "plugin-rejected";
inline constexpr const char* kPluginVoteLost = "plugin-vote-lost";
inline constexpr const char* kInvalidAnnotation = "invalid-annotation";
inline constexpr const char* kNeighboursStranded = "neighbours-stranded";
inline constexpr const char* kNeighboursStuck = "neighbours-stuck";

// Reasons for a container's place.
inline constexpr const char* kBestScore = "best-score";
inline constexpr const char* kNoOpinion = "no-opinion";
inline constexpr const char* kZoneMissed = "zone-missed";
inline constexpr const char* kZoneYielded = "zone-yielded";
inline constexpr const char* kNoPluginAnswered = "no-plugin-answered";
inline constexpr const char* kNodeFullShared = "node-full-shared";
inline constexpr const char* kKubeletExclusive = "kubelet-exclusive";
inline constexpr const char* kKubeletBound = "kubelet-bound";
inline constexpr const char* kKubeletConflict = "kubelet-conflict";

// Reasons for moving a container.
inline constexpr const char* kMadeRoom = "made-room";
inline constexpr const char* kRoom = "room";
inline constexpr const char* kHealed = "healed";
inline constexpr const char* kCrowded = "crowded";
inline constexpr const char* kHomePressed = "home-pressed";
inline constexpr const char* kHomeRelaxed = "home-relaxed";
inline constexpr const char* kSpareNeeded = "spare-needed";
inline constexpr const char* kLoadUnknown = "load-unknown";
inline constexpr const char* kHomeStrict = "home-strict";
inline constexpr const char* kBestEffortYields = "besteffort-yields";
inline constexpr const char* kBestEffortFreed = "besteffort-freed";
inline constexpr const char* kBestEffortPressure = "besteffort-pressure";
inline constexpr const char* kBestEffortMemory = "besteffort-memory";
inline constexpr const char* kBestEffortMemoryFreed = "besteffort-memory-freed";
inline constexpr const char* kReleased = "released";
inline constexpr const char* kReturned = "returned";
inline constexpr const char* kCpusUnavailable = "cpus-unavailable";
inline constexpr const char* kCpusAvailable = "cpus-available";
inline constexpr const char* kExclusiveAgain = "exclusive-again";
inline constexpr const char* kRequestedByPlugin = "requested-by-plugin";
inline constexpr const char* kLeftCpus = "left-cpus";
inline constexpr const char* kStuckKept = "stuck-kept";
inline constexpr const char* kReverted = "reverted";
inline constexpr const char* kDemandChanged = "demand-changed";
inline constexpr const char* kMemoryMoved = "memory-moved";

// Events of a container whose CPUs something else sets.
inline constexpr const char* kOverruledBegan = "overruled-began";
inline constexpr const char* kMemoryOverruled = "memory-overruled";
inline constexpr const char* kOverruledEnded = "overruled-ended";

// Events of the kubelet's CPU manager.
inline constexpr const char* kKubeletStaticOn = "kubelet-static-on";
inline constexpr const char* kKubeletStaticOff = "kubelet-static-off";
// Events of a container that does not leave CPUs.
inline constexpr const char* kStuckBegan = "stuck-began";
inline constexpr const char* kStuckEnded = "stuck-ended";

// Events of a container on CPUs that another one has alone.
inline constexpr const char* kOverlapBegan = "overlap-began";
inline constexpr const char* kOverlapEnded = "overlap-ended";

// Reasons why a container that topolet did not create is known.
inline constexpr const char* kFoundRunning = "found-running";
inline constexpr const char* kHandlerNotPlaced = "handler-not-placed";

}  // namespace topolet::placement::reason_code
