// Puts containers beside their GPUs and other devices.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/judge.hpp"
#include "plugins/gpu/kinds.hpp"
#include "plugins/gpu/search.hpp"

namespace topolet::gpu {

struct PolicyOptions {
  Rules rules;
  bool keep_free = false;
  std::vector<Kind> kinds;
  Roots roots;
  std::string nvml_library;
};

/// Throws std::invalid_argument in words.
PolicyOptions read_options(const sdk::Options& options);

/// Reads files when it is made and, on a thread of its own, as long as tick() finds something changed: decisions do not
/// wait for files, however slow.
class Policy {
 public:
  Policy(const sdk::Options& options, const sdk::Host& host);

  /// More than tidy packing, less than room.
  static constexpr std::uint32_t kDefaultWeight = 4;

  void propose(const topolet_request& request, sdk::Proposals& proposals) const;
  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& picking, sdk::Picks& picks) const;

  /// CDI specs are written moments before the container that they are for is made.
  std::uint32_t interval_ms() const { return 1000; }
  void tick(const topolet_tick_request& request, sdk::Wishes& wishes);

 private:
  std::vector<Verdict> verdicts(const topolet_request& request) const;
  Sought sought_by(const topolet_request& request) const;
  std::string strangeness(const topolet_topology& topology) const;
  /// What has changed in the files since it was looked last.
  struct News {
    std::optional<Devices> devices;
    std::optional<CdiRegistry> cdi;
    std::string cdi_stamp;
  };
  News look(bool for_devices) const;
  void take(News news);

  PolicyOptions options_;
  sdk::Host host_;
  bool has_said_strange_ = false;
  Inventory inventory_;  ///< changed by tick() only, while nobody looks
  std::string cdi_stamp_;
  std::uint64_t generation_ = 0;
  std::future<News> looking_;  ///< ends before what it looks at
};

}  // namespace topolet::gpu
