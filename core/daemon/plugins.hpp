// The plugins at work: made from the configuration, swapped as a whole by a reload, described to the operator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/control/control.pb.h"
#include "core/daemon/setup.hpp"
#include "core/plugin/control_thread.hpp"
#include "core/plugin/crash_log.hpp"
#include "core/plugin/load.hpp"
#include "core/plugin/policy_thread.hpp"

namespace topolet {

/// Safe from any thread, but replace() and reset() wait for each other.
class Plugins {
 public:
  /// Both must outlive it.
  struct Keepers {
    CrashLog& crashes;
    ControlThread& control;
  };
  Plugins(PolicyThread::Options options, Keepers keepers, std::shared_ptr<StateStore> state);
  ~Plugins();
  Plugins(const Plugins&) = delete;
  Plugins& operator=(const Plugins&) = delete;

  /// Makes a new instance of every plugin that `setup` enables and then, if all could be made, puts them in the place
  /// of the old ones between two decisions. An old instance goes when no call is in it any more; one that does not come
  /// back from being made or ended is left behind, in the first case with an error. If the past counts, plugins that
  /// crashed topoletd too often are in quarantine afterwards; if it is forgiven, only those that a call is still inside
  /// of.
  enum class Past : std::uint8_t { kCounts, kForgiven };
  Status replace(const Setup& setup, Past past) TOPOLET_EXCLUDES(changing_);

  /// Runs one decision with the plugins as they are.
  template <class R, class TypedJob>
  R decide(TypedJob job) {
    return thread_.run_as<R>(voters(), std::move(job));
  }

  void report_bad_answer(const std::string& plugin, const std::string& what) {
    thread_.report_bad_answer(plugin, what);
  }

  /// Whether an enabled plugin has this capability.
  bool has(std::string_view capability) const TOPOLET_EXCLUDES(mutex_);
  /// See PolicyThread.
  void notify(std::shared_ptr<const Happening> happening) { thread_.notify(voters(), std::move(happening)); }
  std::vector<ReplacementWish> tick(const std::function<std::shared_ptr<const TickView>()>& view) {
    return thread_.tick(voters(), view);
  }

  /// Ends a quarantine. NOT_FOUND names the plugins there are; FAILED_PRECONDITION says why only a restart helps.
  Status reset(const std::string& id) TOPOLET_EXCLUDES(changing_);

  /// The enabled ones, in their order.
  void describe(control::v1::ListPluginsResponse& response) const TOPOLET_EXCLUDES(mutex_);

  /// Every library that was ever loaded.
  std::vector<PluginLibrary> libraries() const TOPOLET_EXCLUDES(mutex_);
  /// Adds those that are not among them. They stay mapped, whatever becomes of what they were loaded for.
  void remember(const std::vector<PluginLibrary>& libraries) TOPOLET_EXCLUDES(mutex_);

  /// Of decisions and events; see PolicyThread.
  bool has_abandoned_calls() const { return thread_.has_abandoned_calls(); }

 private:
  /// One enabled plugin.
  struct Seat {
    PluginOptions options;
    std::optional<PluginLibrary> library;  ///< absent: it crashed while it was loaded, and was not loaded again
    std::shared_ptr<Policy> policy;
    std::vector<std::string> capabilities;
    bool started = true;  ///< false: it crashed when it was loaded or made, and was not made again

    const std::string& id() const { return options.name; }
  };
  using Seats = std::vector<Seat>;

  std::vector<Voter> voters() const TOPOLET_EXCLUDES(mutex_);
  Result<Seats> make_seats(const Setup& setup, Past past) const;
  Result<Seat> make_seat(const PluginLibrary& library, const PluginOptions& options,
                         const std::map<std::string, std::string>& others, Past past) const;
  Seat make_empty_seat(std::optional<PluginLibrary> library, const PluginOptions& options) const;
  Result<std::shared_ptr<PluginPolicy>> make_policy(const PluginLibrary& library, const PluginOptions& options,
                                                    const std::map<std::string, std::string>& others) const;
  void apply(const std::string& id, Past past);
  Status forgive(const std::string& id);
  Seats seats() const TOPOLET_EXCLUDES(mutex_);

  const std::shared_ptr<Log> log_;
  CrashLog& crashes_;
  ControlThread& control_;
  const std::shared_ptr<StateStore> state_;
  PolicyThread thread_;
  Mutex changing_;
  mutable Mutex mutex_;
  Seats seats_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<PluginLibrary> libraries_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet
