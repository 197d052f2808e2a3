// Puts containers beside their devices: the ground work, without a policy yet.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::gpu {

enum class Affinity : std::uint8_t { kPrefer, kRequire };

struct PolicyOptions {
  Affinity affinity = Affinity::kPrefer;
  bool keep_free = false;
  std::vector<std::string> kinds;  ///< lower case
};

/// Throws std::invalid_argument for a kind of device that it does not know.
PolicyOptions read_options(const sdk::Options& options);

/// How close two PCI devices are, closest first.
enum class Closeness : std::uint8_t { kSameSwitch, kSameRoot, kSameNode, kSamePackage, kFar };

/// By position in the topology's pci_devices.
Closeness closeness(const topolet_topology& topology, std::uint32_t a, std::uint32_t b);

/// The devices that a workload names by their operating system's name (the end of a path such as /dev/nvme0n1) or by a
/// UUID in its environment or CDI names, as positions in the topology's os_devices.
std::vector<std::uint32_t> devices_of(const topolet_topology& topology, const topolet_workload& workload);

/// It scores nothing and sets nothing; it says which devices it sees.
class Policy {
 public:
  Policy(const sdk::Options& options, const sdk::Host& host);

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const;
  void notify(const topolet_event& event) const;
  std::uint32_t interval_ms() const { return 60000; }
  void tick(const topolet_tick_request& request, sdk::Wishes& wishes) const;

 private:
  PolicyOptions options_;
  sdk::Host host_;
};

}  // namespace topolet::gpu
