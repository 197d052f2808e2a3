// One plugin at work, seen by the core as a Policy.
#pragma once

#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/score.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {

/// The host as one instance sees it: its log. Must outlive the instance.
class PluginHost {
 public:
  PluginHost(std::string plugin, std::shared_ptr<Log> log);
  PluginHost(const PluginHost&) = delete;
  PluginHost& operator=(const PluginHost&) = delete;

  const topolet_host* view() const { return &view_; }

 private:
  static const void* get_capability(const topolet_host* host, topolet_str id);
  static void write_log(const topolet_host* host, std::int32_t level, topolet_str message);

  std::string plugin_;
  std::shared_ptr<Log> log_;
  topolet_log log_capability_{};
  topolet_host view_{};
};

/// Asks one instance, behind a barrier: nothing it throws or says gets past here unchecked.
/// Errors name the plugin. Their codes: INTERNAL = it misbehaved (threw, or an answer that makes no sense);
/// UNAVAILABLE = it gave up its vote itself.
/// score() and pick() only from one thread at a time; give_up() from any.
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
  Result<Pick> pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable) override;

  /// The same on a view that other plugins and calls share.
  Result<std::vector<Verdict>> score(const RequestView& request);
  Result<Pick> pick(const RequestView& request, std::size_t candidate, const CpuSet& usable);

  /// From now until the call that is running has returned, its sink answers TOPOLET_LATE.
  void give_up() { given_up_ = true; }

  /// The ids of the capabilities it has.
  std::vector<std::string> capabilities() const;

 private:
  PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance);
  Status read_capabilities();

  std::string name_;
  std::unique_ptr<PluginHost> host_;
  const topolet_instance* instance_;
  const topolet_score* score_ = nullptr;
  const topolet_pick* pick_ = nullptr;
  std::atomic<bool> given_up_ = false;
};

}  // namespace topolet
