// One running plugin, as the core asks it.
//
// The room core/plugin/call, namespace topolet::plugin: asks loaded plugins, on a thread that can be abandoned
// (policy_thread.hpp), and checks what they answer. It may include what core/plugin/host may, and core/plugin/guard,
// but nothing of core/plugin/host.
#pragma once

#include <topolet/abi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/annotation_names.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/call_result.hpp"
#include "core/plugin/call/capabilities.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/plugin/call/plugin_host.hpp"
#include "core/plugin/call/sink_replies.hpp"
#include "core/plugin/call/values_by_minor.hpp"

namespace topolet::plugin {

/// What a plugin reads of containers beside what all can see. Patterns of names, in which * is any text.
struct NamesRead {
  std::vector<std::string> env;          ///< of environment variables
  std::vector<std::string> annotations;  ///< keys, besides those of topolet.io/
  bool load = false;                     ///< measured load, too
};

/// Asks one instance, behind a barrier: nothing it throws or says gets past here unchecked. Errors name the plugin.
/// score(), propose(), pick(), adjust(), notify() and tick() only from one thread at a time; the others from any.
class PluginPolicy final {
 public:
  /// Takes over `instance`, which must come from this plugin's create() with this host.
  /// INTERNAL if the instance or a capability of it is malformed.
  static Result<std::shared_ptr<PluginPolicy>> wrap(std::string name, std::unique_ptr<PluginHost> host,
                                                    const topolet_instance* instance);
  ~PluginPolicy();
  PluginPolicy(const PluginPolicy&) = delete;
  PluginPolicy& operator=(const PluginPolicy&) = delete;

  const std::string& name() const { return name_; }

  /// From now on the plugin crashes where it writes to the arguments of a call, instead of losing its vote. Before the
  /// first call.
  void lend_read_only() { arguments_.emplace(LentMemory{.guard = LentGuard::kReadOnly}); }
  /// From now on it is told only what a plugin that knows these values can understand. Before the first call.
  void speak(const KnownValues& known) { known_ = known; }
  /// Requests, ledgers and topologies that it is shown must be made for these.
  const KnownValues& known() const { return known_; }
  /// From now on each call is followed by a check of the topology, too, which is large.
  void watch_topology() { watches_topology_ = true; }

  /// One verdict per candidate; the plugin abstains where it says nothing.
  CallResult<std::vector<placement::Verdict>> score(const AbiRequest& request);
  CallResult<std::vector<NodeSet>> propose(const AbiRequest& request);
  /// `chosen`: with TOPOLET_PICK_REVIEW. Nothing if it does not know the stage.
  CallResult<placement::Pick> pick(const AbiRequest& request, std::size_t candidate, const CpuSet& usable,
                                   std::size_t count, topolet_pick_stage stage = TOPOLET_PICK_CHOOSE,
                                   const CpuSet& chosen = {});
  CallResult<placement::Adjustment> adjust(const AbiRequest& request, const placement::ChosenPlacement& chosen);

  template <class Struct, class Member>
  bool has(const Capability<Struct, Member>& capability) const {
    return struct_of(capabilities_, capability) != nullptr;
  }
  bool handles_events() const { return has(kEvents); }
  bool hears_of(ContainerEvent::Kind kind) const {
    return handles_events() && known_.has(AbiValues::kEventKind, static_cast<std::int32_t>(kind));
  }
  /// OK if it does not hear of such events.
  CallStatus notify(const ContainerEvent& container_event, const AbiTopology& topology);

  /// 0 if it wants no ticks.
  std::chrono::milliseconds tick_interval() const;
  // Ticks that the plugin wants beside those of its interval: see PluginHost.
  bool wants_tick() const { return host_->wants_tick(); }
  void set_wants_tick(bool wants) { host_->set_wants_tick(wants); }
  bool begin_tick() { return host_->begin_tick(); }
  void wake_by(PluginHost::Wake wake) { host_->wake_by(std::move(wake)); }
  /// `ledger` shows that of the tick.
  CallResult<TickAnswer> tick(const TickSnapshot& tick, const AbiTopology& topology, const AbiLedger& ledger,
                              const TickTime& now);

  /// From now until forget_abandoned_call(), sinks and state answer TOPOLET_LATE.
  void abandon_call() { host_->call_abandoned() = true; }
  bool is_call_abandoned() const { return host_->call_abandoned(); }
  /// Must come before the time of the next call begins: that call can be abandoned before the plugin is entered.
  void forget_abandoned_call() { host_->call_abandoned() = false; }

  /// The annotations that it says it reads; absent if it does not say.
  const std::optional<std::vector<std::string>>& annotations() const { return annotations_; }

  /// Returns the annotations by which it says that a container gets more from others than it requests.
  const std::vector<placement::TakingAnnotation>& taking_annotations() const { return taking_annotations_; }

  /// Returns the other names of a container that it says its answers depend on.
  const NamesRead& names_read() const { return names_read_; }

  /// Returns the codes that it has for its reasons.
  const std::vector<std::string>& codes() const { return codes_.codes; }

  /// The ids of the capabilities it has.
  std::vector<std::string> capabilities() const;
  /// The ids of the host's capabilities that it has asked for and was given.
  std::vector<std::string> host_capabilities() const { return host_->given_capabilities(); }

 private:
  PluginPolicy(std::string name, std::unique_ptr<PluginHost> host, const topolet_instance* instance);
  Status read_capabilities();
  /// Begins a call, with no arguments yet. The flag turns true when the host abandons it.
  const std::atomic<bool>& begin_call();
  /// Other blocks that are shown in a call; null where there are none.
  struct Shown {
    const LentBlock* request = nullptr;
    const AbiLedger* ledger = nullptr;
    const AbiTopology* topology = nullptr;
  };
  static Shown shown_of(const AbiRequest& request) {
    return {&request.block(), &request.ledger(), &request.topology()};
  }
  /// Asks the plugin, which must have the capability, and judges how that ended. `request` lies in arguments_, or in a
  /// block of `shown`.
  template <class Struct, class Function, class Request, class Reply>
  CallStatus call(const Capability<Struct, Function>& capability, const Request* request, Reply& reply,
                  const Shown& shown);
  /// Logs each variable once that decides which code a container runs.
  void warn_of_search_paths(const placement::AddedFields& added);
  /// Logs each class once that containers were not put into.
  void warn_of_unusable_class(const std::string& rdt_class);
  void warn_of_unusable_settings(const std::vector<std::string>& settings, const placement::Settable& settable);
  /// Returns which memory was written to during the call that has just returned; nothing if none was.
  std::optional<CallFailure> check_lent_memory(const Shown& shown, const char* function);

  std::string name_;
  std::unique_ptr<PluginHost> host_;
  const topolet_instance* instance_;
  CapabilityStructs capabilities_{};
  std::optional<std::vector<std::string>> annotations_;
  std::vector<placement::TakingAnnotation> taking_annotations_;
  NamesRead names_read_;
  ReasonCodes codes_;
  std::set<std::string> warned_of_;  ///< variables, and RDT classes
  /// The arguments of the running call, filled anew for each. No other plugin is ever lent this memory.
  std::optional<LentBlock> arguments_{std::in_place};
  bool watches_topology_ = false;
  KnownValues known_;
};

}  // namespace topolet::plugin
