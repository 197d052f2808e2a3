// One pass of healing that the operator asks for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/clock.hpp"
#include "core/engine/converge/heal_report.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/planning/heal_planner.hpp"

namespace topolet::engine {

/// Moves every container that could be better off, one after the other, each when the one before has left its CPUs. A
/// dry run only says so, and plans on a copy of the ledger. Lives on the loop's thread, and until it has answered.
class HealPass : public std::enable_shared_from_this<HealPass> {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    const Placer& placer;
    Mover& mover;
    Clock clock;
  };
  static void run(const Deps& deps, bool is_dry, OnHealed then);

 private:
  HealPass(const Deps& deps, bool is_dry, OnHealed then);

  const Ledger& ledger() const { return trial_ ? *trial_ : deps_.committer.ledger(); }
  void go_on();
  bool may_be_tried(const placement::ContainerKey& key);
  void try_one(const placement::ContainerKey& key);
  void try_dry(const placement::ContainerKey& key);
  std::optional<Plan> plan(const Allocation& before);
  void wait_for(const std::string& container_id, const std::string& name);
  void finish();

  const Deps deps_;
  std::optional<Ledger> trial_;  ///< of a dry run
  const HealPlanner planner_;
  const OnHealed then_;
  std::set<placement::ContainerKey> settled_;  ///< moved, or not to be asked about at all
  std::set<placement::ContainerKey> in_vain_;  ///< asked about since the last move
  std::map<std::string, std::string> left_;    ///< why each stays, by name
  HealReport report_;
  std::size_t tried_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace topolet::engine
