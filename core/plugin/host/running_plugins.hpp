// The plugins at work: made from the configuration, swapped as a whole by a reload, described to the operator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/placement/annotation_names.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/guard/control_thread.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/plugin/host/common_options.hpp"
#include "core/plugin/host/load.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "store/plugin_state_store.hpp"

namespace topolet::plugin {

/// An enabled plugin, for the operator.
struct PluginDescription {
  config::PluginOptions options;
  std::optional<PluginLibrary> library;  ///< absent: it crashed while it was loaded, and was not loaded again
  std::vector<std::string> capabilities;
  PluginStatistics statistics;
  std::string stuck;  ///< that a call of the control thread has not returned, and what to do; empty otherwise
};

/// Safe from any thread, but replace() and reset() wait for each other.
class RunningPlugins {
 public:
  /// Both must outlive it.
  struct Deps {
    CrashLog& crashes;
    ControlThread& control;
    /// The machine as it is, which plugins judge their options by; empty, or null: not known.
    std::function<std::shared_ptr<const topology::Topology>()> machine = {};
  };
  RunningPlugins(PolicyThread::Options options, Deps deps, std::shared_ptr<store::PluginStateStore> state);
  ~RunningPlugins();
  RunningPlugins(const RunningPlugins&) = delete;
  RunningPlugins& operator=(const RunningPlugins&) = delete;

  /// Makes a new instance of every plugin that `setup` enables and then, if all could be made, puts them in the place
  /// of the old ones between two decisions. An old instance is destroyed when no call is in it any more. If a create()
  /// or destroy() does not return, its instance is left behind; for a create() this is an error. With kApplied, plugins
  /// that crashed topoletd too often are quarantined; with kForgotten, only plugins that a call is still inside of.
  /// `number`: of the setup in the audit, for decide().
  enum class CrashHistory : std::uint8_t { kApplied, kForgotten };
  Status replace(const LoadedConfig& setup, CrashHistory history, std::int64_t number = 0)
      TOPOLET_EXCLUDES(reload_mutex_);

  /// Runs one decision with the plugins as they are. `job` takes the votes, and the number of the setup that they are
  /// of. `began`: as for PolicyThread::run_as().
  template <class R, class TypedJob>
  R decide(TypedJob job, std::optional<PolicyThread::RealTime> began = std::nullopt) {
    std::int64_t setup = 0;
    const std::vector<PluginVote> voters = votes(&setup);
    return policy_thread_.run_as<R>(
        voters, [job = std::move(job), setup](const auto& votes) { return job(votes, setup); }, began);
  }

  void report_invalid_reply(const std::string& plugin, const std::string& what) {
    policy_thread_.report_invalid_reply(plugin, what);
  }

  /// Returns the annotations that are read with these plugins. One that is not running does not say what it reads.
  placement::KnownAnnotations annotations() const TOPOLET_EXCLUDES(mutex_);

  /// Returns what these plugins read beside that.
  NamesRead names_read() const TOPOLET_EXCLUDES(mutex_);
  /// Returns true if one of them reads measured load.
  bool reads_load() const TOPOLET_EXCLUDES(mutex_);

  /// Returns true if an enabled plugin has this capability.
  bool has(std::string_view capability) const TOPOLET_EXCLUDES(mutex_);
  /// See PolicyThread.
  void publish(std::shared_ptr<const ContainerEvent> container_event) {
    policy_thread_.publish(votes(), std::move(container_event));
  }
  std::vector<MoveRequest> tick(const std::function<std::shared_ptr<const TickSnapshot>()>& view,
                                std::vector<std::string>* woken = nullptr) {
    return policy_thread_.tick(votes(), view, woken);
  }
  /// Returns how much is for BestEffort containers, as a plugin says that is asked.
  placement::BestEffortShare besteffort_share() const { return besteffort_share_of(votes(), policy_thread_.states()); }
  /// Sets what is called, on any thread, when a plugin wants a tick: with the time until that may begin. Empty:
  /// nothing; what it was before is not called any more.
  void wake_by(PluginHost::Wake wake) { waker_->set(std::move(wake)); }

  /// Ends a quarantine. NOT_FOUND names the plugins there are; FAILED_PRECONDITION says why only a restart helps.
  Status reset(const std::string& id) TOPOLET_EXCLUDES(reload_mutex_);

  /// The enabled ones, in their order.
  std::vector<PluginDescription> describe() const TOPOLET_EXCLUDES(mutex_);

  /// Every library that was ever loaded.
  std::vector<PluginLibrary> libraries() const TOPOLET_EXCLUDES(mutex_);
  /// Adds those that are not among them. They stay mapped, whatever becomes of what they were loaded for.
  void add_libraries(const std::vector<PluginLibrary>& libraries) TOPOLET_EXCLUDES(mutex_);

  /// Returns true if calls of decisions or events were abandoned; see PolicyThread.
  bool has_abandoned_calls() const { return policy_thread_.has_abandoned_calls(); }

 private:
  /// One enabled plugin.
  struct LoadedPlugin {
    config::PluginOptions options;
    std::optional<PluginLibrary> library;  ///< absent: it crashed while it was loaded, and was not loaded again
    std::shared_ptr<PluginPolicy> policy;  ///< null if it is not started
    std::vector<std::string> capabilities;
    bool started = true;  ///< false: it crashed when it was loaded or made, and was not made again

    const std::string& id() const { return options.name; }
  };
  using LoadedPlugins = std::vector<LoadedPlugin>;

  static placement::KnownAnnotations annotations_of(const LoadedPlugins& plugins);
  Status check_annotations(const LoadedConfig& setup, const placement::KnownAnnotations& known) const;
  std::vector<PluginVote> votes(std::int64_t* setup = nullptr) const TOPOLET_EXCLUDES(mutex_);
  Result<LoadedPlugins> make_plugins(const LoadedConfig& setup, CrashHistory history) const;
  Result<LoadedPlugin> make_plugin(const PluginLibrary& library, const config::PluginOptions& options,
                                   const config::Options& all, CrashHistory history) const;
  LoadedPlugin make_unstarted_plugin(std::optional<PluginLibrary> library, const config::PluginOptions& options) const;
  Result<std::shared_ptr<PluginPolicy>> make_policy(const PluginLibrary& library, const config::PluginOptions& options,
                                                    const config::Options& all) const;
  void quarantine_if_it_crashed(const std::string& id);
  Status forget_crashes(const std::string& id);
  LoadedPlugins loaded_plugins() const TOPOLET_EXCLUDES(mutex_);

  /// Shared with the instances, which may outlive this.
  class Waker {
   public:
    void set(PluginHost::Wake wake) TOPOLET_EXCLUDES(mutex_) {
      MutexLock lock(mutex_);
      wake_ = std::move(wake);
    }
    void call(std::chrono::milliseconds until) TOPOLET_EXCLUDES(mutex_) {
      MutexLock lock(mutex_);
      if (wake_) wake_(until);
    }

   private:
    Mutex mutex_;
    PluginHost::Wake wake_ TOPOLET_GUARDED_BY(mutex_);
  };

  const std::shared_ptr<Log> log_;
  CrashLog& crashes_;
  ControlThread& control_;
  const std::function<std::shared_ptr<const topology::Topology>()> machine_;
  const std::shared_ptr<store::PluginStateStore> state_;
  const std::shared_ptr<Waker> waker_ = std::make_shared<Waker>();
  PolicyThread policy_thread_;
  Mutex reload_mutex_;
  mutable Mutex mutex_;
  LoadedPlugins loaded_plugins_ TOPOLET_GUARDED_BY(mutex_);
  std::int64_t setup_ TOPOLET_GUARDED_BY(mutex_) = 0;  ///< the number of what they were loaded by
  std::vector<PluginLibrary> libraries_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
