// Places containers on as few NUMA nodes as possible, as close to each other as possible, by the rules of the kubelet's
// Topology Manager.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Parses the name of a policy; nothing if there is none of this name.
std::optional<Alignment> alignment_named(std::string_view name);
std::string_view name_of(Alignment alignment);

enum class Scope : std::uint8_t { kContainer, kPod };

enum class Strategy : std::uint8_t {
  kPacked,  ///< of equally good node sets the fullest, so that whole nodes stay free
  kSpread,  ///< the emptiest, so that containers share memory bandwidth with few others
};

struct PolicyOptions {
  Alignment policy = Alignment::kBestEffort;
  Scope scope = Scope::kContainer;
  Strategy strategy = Strategy::kPacked;         ///< for containers with exclusive CPUs
  Strategy shared_strategy = Strategy::kSpread;  ///< for all others
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

using sdk::Verdict;

struct CpuOrder {
  std::vector<std::uint32_t> cpus;  ///< by OS index, in the order in which to take them
  std::string reason;
  sdk::Set narrow = {};        ///< take CPUs of this set only; empty for no restriction
  std::string rejection = {};  ///< why the chosen CPUs must not be used; empty if they may
  sdk::Set withhold = {};      ///< kept idle beside the chosen CPUs
  sdk::Set wanted = {};        ///< take as many CPUs of this set as there are; empty for none in particular
};

struct MemoryBinding {
  std::optional<sdk::Set> nodes;  ///< nothing if the memory is not bound
  std::string reason;
};

/// Immutable, so any thread may call it.
class Policy {
 public:
  explicit Policy(PolicyOptions options) : options_(std::move(options)) {}

  static constexpr std::array<topolet_str, 1> kAnnotations = {{sdk::borrow(kPolicyAnnotation)}};

  /// One verdict per candidate; none at all for a container that requests nothing, or for a shared one under policy
  /// none. Candidates with as few nodes as could hold the demand on an empty machine get 100. Each further node costs
  /// 30, nodes without memory and greater distance between as many nodes 14–16, more caches for exclusive CPUs and
  /// cores that others use 5–9, and the strategy's preference among equals up to 4; where it makes a difference to the
  /// container's pod, that costs 7–8, and these less. A candidate where the container can run but lacks something gets
  /// −60 or less. Where a scheduler has chosen nodes, and these have room, candidates outside them get 100 less, and no
  /// less than −50 where they lack nothing.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// Returns the order in which to take CPUs: under policy none, and with one of the options that order CPUs, the
  /// kubelet's; otherwise whole nodes, then whole cores, those of one cache together, then threads of partly used
  /// cores. Empty for a container without exclusive CPUs.
  CpuOrder pick(const topolet_pick_request& request) const;

  /// The memory nodes to bind a container to, if it has a memory limit and memory = bind.
  MemoryBinding adjust(const topolet_adjust_request& request) const;

  /// The nodes that a scheduler has chosen, if they are more than one; else none.
  sdk::Set propose(const topolet_request& request) const;

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void propose(const topolet_request& request, sdk::Proposals& proposals) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;
  void adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const;

 private:
  CpuOrder check_chosen(const topolet_pick_request& picking) const;

  PolicyOptions options_;
};

}  // namespace topolet::numa
