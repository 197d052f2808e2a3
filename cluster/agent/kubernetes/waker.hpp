// Makes schedulers try pods again when a zone of this node has grown.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"

namespace topolet::agent {

/// Wakes schedulers when a zone has more room. On the loop's thread. A topolet-extender that leads does it instead, as
/// it knows which pods it has rejected. It leads as long as its Lease changes, which it renews every second; the time
/// in the Lease is ignored, as clocks of hosts differ. A Lease that cannot be read counts as none.
class Waker {
 public:
  struct Options {
    std::string node_name;
    /// The schedulers whose waiting pods may be woken.
    std::vector<std::string> scheduler_names;
    std::string lease_namespace;  ///< empty: there is no extender
    std::string lease_name;
  };
  Waker(Options options, api::Api& api, Log& log);

  void zone_has_grown();
  std::uint64_t wake_ups() const { return wake_ups_; }

 private:
  using Time = api::Api::Clock::time_point;

  void look_at_lease(Time when);
  void ask_for_lease();
  void take_lease(const api::ApiAnswer& answer);
  void leave_it_to_extender();
  void wake();
  void ask_who_waits(std::size_t scheduler);
  void annotate_node();

  const Options options_;
  api::Api& api_;
  api::TroubleLog trouble_;
  api::TroubleLog lease_trouble_;
  std::uint64_t wake_ups_ = 0;
  Time next_wake_up_{};
  bool is_wake_due_ = false;

  bool has_grown_ = false;  ///< and it is not certain that an extender has seen to it
  bool is_looking_ = false;
  Time trusted_until_{};
  std::string mark_;  ///< changes whenever the Lease is renewed
  Time mark_seen_{};
};

}  // namespace topolet::agent
