// Places containers on as few and as close NUMA nodes as can hold them, in the sense of the kubelet's Topology Manager.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/numa/kubelet_order.hpp"
#include "plugins/numa/memory.hpp"

namespace topolet::numa {

/// The Topology Manager's policies, by the same names.
enum class Alignment : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };

/// Nothing if there is no such policy.
std::optional<Alignment> alignment_named(std::string_view name);
std::string_view name_of(Alignment alignment);

enum class Scope : std::uint8_t { kContainer, kPod };

enum class Strategy : std::uint8_t {
  kPacked,  ///< of equal node sets the fullest that still fits, so that whole nodes stay free
  kSpread,  ///< the emptiest, so that containers share memory bandwidth with few others
};

struct PolicyOptions {
  Alignment policy = Alignment::kBestEffort;
  Scope scope = Scope::kContainer;
  Strategy strategy = Strategy::kPacked;
  bool bind_memory = false;
  ReservedMemory reserved_memory = {};
  KubeletOrder order = {};
  bool rounds_up = false;  ///< the smt plugin lets what does not fill the last core of a request idle
  bool align_by_socket = false;
  bool prefer_closest_numa_nodes = false;

  /// Exclusive CPUs come in whole cores, and none of them idle.
  bool whole_cores_only() const { return order.full_pcpus_only && !rounds_up; }
};

/// From the plugin's options. Throws std::invalid_argument, in one line, for a value that cannot be read and for two
/// that exclude each other: the kubelet's rules.
PolicyOptions read_options(const sdk::Options& options);

using sdk::Verdict;

struct CpuOrder {
  std::vector<std::uint32_t> cpus;  ///< by OS index, the ones to take first
  std::string reason;
  sdk::Set narrow = {};        ///< no others; empty: any will do
  std::string rejection = {};  ///< why the chosen CPUs will not do; empty: they will
};

struct MemoryBinding {
  std::optional<sdk::Set> nodes;  ///< nothing: not bound
  std::string reason;
};

/// Immutable, so safe from any thread.
class Policy {
 public:
  explicit Policy(PolicyOptions options) : options_(std::move(options)) {}

  /// One verdict per candidate; none at all for a shared container that asks for nothing, or under policy none.
  /// The narrowest width that could hold the demand if nobody else ran there gets 100; each node more costs 30, farther
  /// nodes of the same width 11–19, and what the strategy prefers of equals makes up to 10. Candidates where the
  /// container can run but finds too little of something get −60 and less.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// Which CPUs to take first. Under policy none, and with one of the options that order CPUs, those the kubelet would
  /// take; otherwise whole nodes, whole cores, those of one cache together, and single threads of cores in use. Empty
  /// for a container that gets no CPUs of its own.
  CpuOrder pick(const topolet_pick_request& request) const;

  /// The memory nodes of a container with a memory limit, if memory is to be bound.
  MemoryBinding adjust(const topolet_adjust_request& request) const;

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;
  void adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const;

 private:
  PolicyOptions options_;
};

}  // namespace topolet::numa
