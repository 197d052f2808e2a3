// Moves running containers: when CPUs go offline or come online, when a container releases some, when they are crowded,
// or wider than they need be, or when a plugin requests it.
#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "core/base/clock.hpp"
#include "core/engine/converge/heal_report.hpp"
#include "core/engine/converge/move_withdrawals.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/paced_moves.hpp"
#include "core/engine/planning/crowd_planner.hpp"
#include "core/engine/planning/heal_planner.hpp"
#include "core/engine/planning/rebalance_planner.hpp"
#include "core/plugin/call/container_event.hpp"

namespace topolet::engine {

/// Decides which containers are asked for and in which order; RebalancePlanner plans, and the Mover carries out. Lives
/// on the loop's thread.
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

  /// Subscribes itself.
  explicit Rebalancer(Deps deps);
  Rebalancer(const Rebalancer&) = delete;
  Rebalancer& operator=(const Rebalancer&) = delete;

  /// Nothing is moved before this: until then it is not known what runs.
  void begin();
  /// Nobody is moved any more, but those whose CPUs go.
  void end() { has_ended_ = true; }

  void change_machine(Machine machine);
  void move_as_requested(const plugin::MoveRequest& request);
  /// Makes one pass of healing now; see HealPass.
  void heal(bool is_dry, OnHealed then);
  /// Retries, at growing intervals, for containers that have not left CPUs that are gone, or that lack CPUs.
  void retry();
  /// Makes up for the moves that a container missed while its create was under way or in doubt.
  void catch_up(const placement::ContainerKey& key);

  void on_durable(const Transition& transition) override;

 private:
  /// When a container is tried again.
  struct Retry {
    std::chrono::steady_clock::time_point next{};
    std::chrono::seconds delay{10};
  };

  bool is_due(const placement::ContainerKey& key);
  void vacate_unavailable_cpus();
  void vacate_unavailable_cpus(const placement::ContainerKey& key);
  void regain();
  void regain(const placement::ContainerKey& key);
  void schedule_regain();

  const Deps deps_;
  const RebalancePlanner planner_;
  const CrowdPlanner crowd_planner_;
  const HealPlanner heal_planner_;
  PacedMoves paced_moves_;
  MoveWithdrawals move_withdrawals_;
  bool has_begun_ = false;
  bool has_ended_ = false;
  bool regain_scheduled_ = false;
  std::map<placement::ContainerKey, Retry> retries_;
};

}  // namespace topolet::engine
