// Lets containers that share CPUs run beside their homes while more is used of these than they are, and brings them
// back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "core/base/clock.hpp"
#include "core/engine/planning/home_planner.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Decides when: what HomePlanner plans is committed as it is. Nobody waits for a container to leave CPUs that it
/// shares. Lives on the loop's thread.
class HomeRelief {
 public:
  struct Deps {
    Committer& committer;
    Placer& placer;
    Clock clock;
  };
  explicit HomeRelief(Deps deps) : deps_(std::move(deps)), planner_(deps_.committer.ledger(), deps_.placer) {}
  HomeRelief(const HomeRelief&) = delete;
  HomeRelief& operator=(const HomeRelief&) = delete;

  /// To be called about once a second.
  void check();
  /// Nobody is widened or narrowed any more.
  void end() { has_ended_ = true; }

 private:
  /// The answer of the policies about a container, as long as it and the configuration are as they were.
  struct Asked {
    std::int64_t decision = 0;
    std::int64_t setup = 0;
    bool is_soft = false;
  };

  bool has_widened() const;
  /// Returns true if something has changed.
  bool narrow(const HomeUse& use, const HomePlanner::Times& now);
  void widen(const HomeUse& use, const HomePlanner::Times& now);
  std::optional<bool> is_soft(const Allocation& allocation, std::size_t& questions);
  std::int64_t setup() const;

  const Deps deps_;
  const HomePlanner planner_;
  HomePlanner::Lasting lasting_;
  std::map<placement::ContainerKey, Asked> asked_;
  bool has_ended_ = false;
};

}  // namespace topolet::engine
