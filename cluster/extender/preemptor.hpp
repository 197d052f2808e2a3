// Chooses the pods that a scheduler may evict for another, and keeps the zones that become free for that pod.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "cluster/extender/shared_book.hpp"
#include "cluster/extender/victims.hpp"
#include "core/base/log.hpp"

namespace topolet::extender {

/// On the loop's thread.
class Preemptor {
 public:
  struct Options {
    ZoneDefaults defaults;
    std::chrono::milliseconds patience{3500};  ///< for an answer: below the scheduler's, which is 5 s by default
    std::size_t nodes_at_once = 8;             ///< whose pods are listed
    std::chrono::milliseconds first_look{1000};
    std::chrono::milliseconds look_every{5000};
    std::chrono::seconds until_nominated{10};
    /// Zones are kept for so long after all victims must have ended.
    std::chrono::seconds keep{300};
    /// The pause before zones that the former leader has kept are read again, after a failure.
    std::chrono::milliseconds retry{500};
    /// The longest time for which placement waits for zones that could not be read.
    std::chrono::milliseconds longest_restore{10'000};
    int most_in_vain = 3;  ///< after which nobody is evicted for a pod any more
  };
  Preemptor(api::Api& api, SharedBook& shared, Options options, Log& log);
  ~Preemptor() { *is_alive_ = false; }
  Preemptor(const Preemptor&) = delete;
  Preemptor& operator=(const Preemptor&) = delete;

  /// Begins to decide: reads for which pods others were evicted before.
  void begin();
  void end();

  /// Called with the victims on each node; nodes on which evictions might be in vain are left out.
  using OnPlanned = std::function<void(const std::vector<NodeVictims>& nodes)>;
  void preempt(PreemptionArgs args, RecentDemands::Read demand, OnPlanned on_planned);

 private:
  struct Call;
  using Shared = std::shared_ptr<Call>;
  using Pods = std::vector<PodOnNode>;

  bool has_evicted_for(const Demand& demand);
  void read_budgets(const Shared& call);
  void look_at_nodes(const Shared& call);
  void plan(const Shared& call, const NodeVictims& offered, const api::ApiAnswer& answer);
  void finish(const Shared& call);
  void list_pods(const std::string& selector, std::chrono::milliseconds timeout, api::Api::OnAnswer on_answer);
  Pods pods_on(const std::string& node, const nlohmann::json& list);
  void mark_named(const std::string& node, const Demand& demand, Pods& pods);
  void keep(const Demand& demand, const std::string& node, PreemptionPlan plan, bool is_nominated);

  void restore();
  void restore_after(std::chrono::milliseconds pause);
  void restore_pods(const std::shared_ptr<std::deque<RecentDemands::Read>>& left);
  void restore_pod(const Demand& wanted, const api::ApiAnswer& pods_on_its_node);
  void look_after_kept();
  void look_after(const Kept& kept);
  void take_pod(const Kept& kept, const api::ApiAnswer& answer);
  void give_up(const Kept& kept);

  api::Api& api_;
  SharedBook& shared_;
  const Options options_;
  Log& log_;
  api::TroubleLog budget_trouble_;
  bool is_deciding_ = false;
  std::uint64_t term_ = 0;
  std::map<std::string, int> in_vain_;  ///< by uid: how often pods were evicted for it, and it was not bound
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::extender
