// The front end for NRI: topolet as a plugin of the runtime, which asks it before it creates, starts and updates
// containers. Nothing of the kubelet changes.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/fronts/nri/awaited_events.hpp"
#include "core/fronts/nri/event_operations.hpp"
#include "core/fronts/nri/own_updates.hpp"
#include "core/fronts/nri/session.hpp"
#include "core/fronts/nri/validator.hpp"
#include "core/operations/operation.hpp"

namespace topolet::nri {

/// The name under which runtimes know the front, as in their required_plugins.
inline constexpr const char* kFrontName = "topolet";

/// Makes operations of events, and answers each before the runtime's patience is over: a plugin that is late loses its
/// connection, and the container is created without it. Serves runtimes that tell most events by StateChange (NRI up to
/// 0.11), and those that have a method for each.
class Front {
 public:
  struct Deps {
    operations::OperationHandler& engine;
    operations::DemandRules demand_rules;
    OwnUpdates& own_updates;
    Validator::Judge judge;
    std::optional<std::string> when_late;  ///< as of Validator
    Log& log;
    std::function<void(const RuntimeFacts&)> on_registered = {};  ///< as of Session::Callbacks
  };
  /// Begins to connect to the runtime's NRI socket, and lasts until it is destroyed. The engine must outlive it.
  Front(std::filesystem::path socket, Deps deps, std::optional<ReleasedSession> released = {});

  /// As of Session.
  void adopt(UniqueFd descriptor) { session_.adopt(std::move(descriptor)); }
  std::optional<ReleasedSession> release(std::chrono::milliseconds patience) { return session_.release(patience); }

  SessionState state() const { return session_.state(); }
  /// The plugins that the runtime asks about containers, this one included, as "INDEX-NAME"; empty before it has told.
  std::vector<std::string> plugins() const TOPOLET_EXCLUDES(mutex_);

 private:
  void on_call(const std::string& method, const std::string& payload, const Answer& answer);
  void on_registered(const RuntimeFacts& runtime);
  void on_lost();
  void on_event(Event event, const LifecycleEvent& about, const Answer& answer);
  PendingAnswerPtr pending(const Answer& answer);
  void create(const std::string& payload, const Answer& answer);
  void refuse_former_create(const CreateRequest& request);
  void forget_create(const std::string& container_id);
  void update(const std::string& payload, const Answer& answer);
  void return_own_update(const UpdateRequest& request, const operations::ContainerCpuset& sent,
                         const PendingAnswerPtr& answer);
  void stop(const LifecycleEvent& about);
  void remove(const LifecycleEvent& about, const Answer& answer);
  void validate(const std::string& payload, const Answer& answer);

  const Deps deps_;
  const Validator validator_;
  const std::shared_ptr<AwaitedEvents> awaited_ = std::make_shared<AwaitedEvents>();
  std::list<std::weak_ptr<PendingAnswer>> unanswered_;  ///< on the session's thread
  /// The ids of the containers whose creates are under way, by sandbox and name; on the session's thread.
  std::map<std::pair<std::string, std::string>, std::string> creating_;
  mutable Mutex mutex_;
  std::vector<std::string> plugins_ TOPOLET_GUARDED_BY(mutex_);
  Session session_;
};

}  // namespace topolet::nri
