// One plugin at work, seen by the core as a Policy.
#pragma once

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/tick.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin/happenings.hpp"
#include "core/plugin/plugin_host.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {

/// Asks one instance, behind a barrier: nothing it throws or says gets past here unchecked.
/// Errors name the plugin. Their codes: INTERNAL = it misbehaved (threw, or an answer that makes no sense);
/// UNAVAILABLE = it gave up its vote itself.
/// score(), propose(), pick(), adjust(), notify() and tick() only from one thread at a time; the others from any.
class PluginPolicy final : public Policy {
 public:
  /// Takes over `instance`, which must come from this plugin's create() with this host.
  /// INTERNAL if the instance or a capability of it is malformed.
  static Result<std::shared_ptr<PluginPolicy>> adopt(std::string name, std::unique_ptr<PluginHost> host,
                                                     const topolet_instance* instance);
  ~PluginPolicy() override;
  PluginPolicy(const PluginPolicy&) = delete;
  PluginPolicy& operator=(const PluginPolicy&) = delete;

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override;
  Result<std::vector<NodeSet>> propose(const PolicyRequest& request) override;
  Result<Pick> pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                    std::size_t count) override;
  Result<Pick> pick_beside(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                           const CpuSet& chosen) override;
  Result<Adjustment> adjust(const PolicyRequest& request, const Chosen& chosen) override;

  /// The same on a view that other plugins and calls share.
  Result<std::vector<Verdict>> score(const RequestView& request);
  Result<std::vector<NodeSet>> propose(const RequestView& request);
  /// `chosen`: empty while nothing is chosen.
  Result<Pick> pick(const RequestView& request, std::size_t candidate, const CpuSet& usable, std::size_t count,
                    const CpuSet& chosen = {});
  Result<Adjustment> adjust(const RequestView& request, const Chosen& chosen);

  bool proposes() const { return propose_ != nullptr; }
  bool hears_events() const { return events_ != nullptr; }
  /// OK if it hears none.
  Status notify(const Happening& happening, const TopologyView& topology);

  /// 0: it wants no ticks.
  std::chrono::milliseconds tick_interval() const;
  Result<std::vector<ReplacementWish>> tick(const TickView& tick, const TopologyView& topology,
                                            std::chrono::milliseconds now);

  /// From now until the call that is running has returned, its sink and its state answer TOPOLET_LATE.
  void give_up() { host_->given_up() = true; }

  /// The ids of the capabilities it has.
  std::vector<std::string> capabilities() const;

 private:
  PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance);
  Status read_capabilities();

  std::string name_;
  std::unique_ptr<PluginHost> host_;
  const topolet_instance* instance_;
  const topolet_score* score_ = nullptr;
  const topolet_propose* propose_ = nullptr;
  const topolet_pick* pick_ = nullptr;
  const topolet_adjust* adjust_ = nullptr;
  const topolet_events* events_ = nullptr;
  const topolet_tick* tick_ = nullptr;
};

}  // namespace topolet
