// Places containers beside their GPUs and other devices.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "plugins/gpu/container_devices.hpp"
#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/options.hpp"

namespace topolet::gpu {

/// Reads the machine's files when it is made and later, if tick() finds that they have changed, on a thread of its own:
/// a decision never waits for a file, however slow.
class Policy {
 public:
  Policy(const sdk::Options& options, const sdk::Host& host);

  static constexpr std::uint32_t kDefaultWeight = gpu::kDefaultWeight;
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  /// The variables and annotations that name devices.
  topolet_reads reads() const;
  void propose(const topolet_request& request, sdk::Proposals& proposals) const;
  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& picking, sdk::Picks& picks) const;
  /// Says which devices the container uses.
  void adjust(const topolet_adjust_request& adjusting, sdk::Adjustments& adjustments) const;

  /// Short, because a CDI spec is written moments before the container that uses it is created.
  std::uint32_t interval_ms() const { return 1000; }
  void tick(const topolet_tick_request& request, sdk::Wishes& wishes);

 private:
  Rules rules_for(const topolet_request& request) const;
  /// The parts of the files that have changed since they were last read.
  struct FileChanges {
    std::optional<KernelDevices> devices;
    std::optional<CdiRegistry> cdi;
    std::string cdi_fingerprint;
  };

  std::vector<sdk::Verdict> verdicts(const topolet_request& request) const;
  ContainerDevices container_devices(const topolet_request& request) const;
  std::string foreign_files_text(const topolet_topology& topology) const;
  FileChanges read_changes(bool read_devices) const;
  void apply(FileChanges changes);

  PolicyOptions options_;
  std::vector<topolet_str> variables_;  ///< that some kind of device is named in: patterns
  sdk::Host host_;
  bool has_warned_foreign_files_ = false;
  Inventory inventory_;  ///< changed by tick() only, while no thread is reading
  std::string cdi_fingerprint_;
  std::uint64_t topology_generation_ = 0;
  std::future<FileChanges> pending_changes_;  ///< last, so that its thread ends before what it reads is gone
};

}  // namespace topolet::gpu
