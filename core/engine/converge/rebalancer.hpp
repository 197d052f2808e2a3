// Places containers anew that run already: when CPUs go or come, when somebody gives some back, when a plugin wishes
// it.
#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "core/base/clock.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/planning/rebalance.hpp"
#include "core/plugin/happenings.hpp"

namespace topolet::engine {

/// Decides who is asked and in which order; Rebalance plans, and the Mover carries out. Lives on the loop's thread.
class Rebalancer final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    Placer& placer;
    Mover& mover;
    Clock clock;
    Log& log;
  };
  /// What changes when CPUs go off- or online.
  struct Machine {
    std::shared_ptr<const Topology> topology;
    std::vector<Candidate> candidates;
    LedgerRules cpus;
  };

  /// Subscribes itself.
  explicit Rebalancer(Deps deps);
  Rebalancer(const Rebalancer&) = delete;
  Rebalancer& operator=(const Rebalancer&) = delete;

  /// Nothing is moved before this: until then it is not known what runs.
  void begin();

  void change_machine(Machine machine);
  void replace(const ReplacementWish& wish);
  /// Once more for those who have not left CPUs that are gone, or lack some, less and less often.
  void retry();
  /// For one that could not be moved before, as its create was under way or in doubt.
  void catch_up(const ContainerKey& key);

  void committed(const Transition& transition) override;

 private:
  /// When a container is tried again.
  struct Retry {
    std::chrono::steady_clock::time_point next{};
    std::chrono::seconds delay{10};
  };

  bool is_due(const ContainerKey& key);
  void leave_what_is_gone();
  void leave_what_is_gone(const ContainerKey& key);
  void reclaim();
  void reclaim(const ContainerKey& key);
  void reclaim_later();

  const Deps deps_;
  const Rebalance plans_;
  bool has_begun_ = false;
  bool will_reclaim_ = false;
  std::map<ContainerKey, Retry> retries_;
};

}  // namespace topolet::engine
