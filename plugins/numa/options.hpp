// The plugin's options as the policy uses them, and the names of the annotations and settings that it reads.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

#include "plugins/numa/kubelet_order.hpp"
#include "plugins/numa/memory.hpp"

namespace topolet::numa {

/// The annotation that overrides PolicyOptions::policy, without topolet.io/.
inline constexpr std::string_view kPolicyAnnotation = "numa-policy";
/// The setting with the nodes that a scheduler has chosen; the host makes it from an annotation.
inline constexpr std::string_view kZoneSetting = "zone";
inline constexpr std::string_view kIsolatedSetting = "isolated";

/// The policies of the Topology Manager.
enum class Alignment : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };

/// Nothing if no policy has this name.
std::optional<Alignment> alignment_named(std::string_view name);
std::string_view name_of(Alignment alignment);

enum class Scope : std::uint8_t { kContainer, kPod };

enum class Strategy : std::uint8_t {
  kPacked,  ///< of equally good node sets the fullest, so that whole nodes stay free
  kSpread,  ///< the emptiest, so that containers share memory bandwidth with few others
  kRoomy,   ///< the emptiest as long as every node keeps room for a large container, then the fullest
};

struct PolicyOptions {
  Alignment policy = Alignment::kBestEffort;
  Scope scope = Scope::kContainer;
  Strategy strategy = Strategy::kPacked;         ///< for containers with exclusive CPUs
  Strategy shared_strategy = Strategy::kSpread;  ///< for all others
  bool soft_homes = false;  ///< containers that share CPUs may run beside their nodes while others have CPUs to spare
  bool bind_memory = false;
  bool requires_zone = false;  ///< a container that a scheduler has chosen nodes for may be on no others
  ReservedMemory reserved_memory = {};
  KubeletOrder order = {};
  bool gives_isolated = false;  ///< placement.isolated: exclusive containers have isolated CPUs without asking for them
  bool rounds_up = false;  ///< smt.round = idle-sibling: a request is rounded up to whole cores, the rest stays idle
  bool align_by_socket = false;
  bool prefer_closest_numa_nodes = false;

  /// Exclusive CPUs must be whole cores, and none of their threads may idle.
  bool whole_cores_only() const { return order.full_pcpus_only && !rounds_up; }
};

/// Reads the plugin's options. Throws std::invalid_argument with one line for a value that cannot be read, and for two
/// options that the kubelet does not allow together.
PolicyOptions read_options(const sdk::Options& options);

}  // namespace topolet::numa
