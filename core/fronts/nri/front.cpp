#include "core/fronts/nri/front.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "core/base/log.hpp"
#include "core/fronts/nri/nri.pb.h"
#include "core/fronts/nri/synchronize.hpp"

namespace topolet::nri {
namespace {

/// Plugins are asked in the order of their indexes. No other one may set what this one does, whatever the order.
constexpr const char* kFrontIndex = "50";

/// An update that fails after it was answered is told by nothing at all, and nothing else is done to its container
/// meanwhile.
constexpr std::chrono::seconds kUpdatePatience{3};

using operations::Outcome;

std::optional<Event> find_event(const std::string& method) {
  static const std::map<std::string, Event> events{{"RunPodSandbox", Event::kRunPodSandbox},
                                                   {"StopPodSandbox", Event::kStopPodSandbox},
                                                   {"RemovePodSandbox", Event::kRemovePodSandbox},
                                                   {"PostCreateContainer", Event::kPostCreateContainer},
                                                   {"StartContainer", Event::kStartContainer},
                                                   {"PostStartContainer", Event::kPostStartContainer},
                                                   {"PostUpdateContainer", Event::kPostUpdateContainer},
                                                   {"StopContainer", Event::kStopContainer},
                                                   {"RemoveContainer", Event::kRemoveContainer}};
  const auto found = events.find(method);
  return found == events.end() ? std::nullopt : std::optional(found->second);
}

Outcome not_created() {
  return {.kind = Outcome::Kind::kRefused, .code = Code::kInternal, .message = "the runtime did not create it"};
}

Outcome done(const std::string& container_id) { return {.kind = Outcome::Kind::kDone, .id = container_id}; }

}  // namespace

Front::Front(std::filesystem::path socket, Deps deps, std::optional<ReleasedSession> released)
    : deps_(std::move(deps)),
      validator_(deps_.judge, deps_.when_late, deps_.log),
      session_({std::move(socket),
                kFrontName,
                kFrontIndex,
                {Event::kRunPodSandbox, Event::kStopPodSandbox, Event::kRemovePodSandbox, Event::kCreateContainer,
                 Event::kPostCreateContainer, Event::kStartContainer, Event::kPostStartContainer,
                 Event::kUpdateContainer, Event::kPostUpdateContainer, Event::kStopContainer, Event::kRemoveContainer,
                 Event::kValidateContainerAdjustment}},
               {.on_call = [this](const std::string& method, const std::string& payload,
                                  const Answer& answer) { on_call(method, payload, answer); },
                .on_registered = [this](const RuntimeFacts& runtime) { on_registered(runtime); },
                .on_lost = [this] { on_lost(); }},
               deps_.log, std::move(released)) {}

std::vector<std::string> Front::plugins() const {
  const MutexLock lock(mutex_);
  return plugins_;
}

void Front::on_call(const std::string& method, const std::string& payload, const Answer& answer) {
  if (method == "Synchronize") {
    const Synchronized synchronized = answer_synchronize(payload);
    answer(synchronized.answer);
    // What runs is read from the runtime's CRI, which tells more.
    if (synchronized.is_last) deps_.engine.on_connected();
    return;
  }
  if (method == "CreateContainer") return create(payload, answer);
  if (method == "UpdateContainer") return update(payload, answer);
  if (method == "ValidateContainerAdjustment") return validate(payload, answer);
  if (method == "StateChange") {
    const Result<StateChange> change = read_state_change(payload);
    return change ? on_event(change->event, change->about, answer) : answer(change.error());
  }
  const std::optional<Event> event = find_event(method);
  if (!event) return answer(std::string());
  const Result<LifecycleEvent> about = read_event(method, payload);
  about ? on_event(*event, *about, answer) : answer(about.error());
}

void Front::on_registered(const RuntimeFacts& runtime) {
  deps_.own_updates.set_asked(true);
  if (deps_.on_registered) deps_.on_registered(runtime);
}

/// The answers under way reach nobody, and nobody tells what became of the last ones.
void Front::on_lost() {
  deps_.own_updates.set_asked(false);
  for (const std::weak_ptr<PendingAnswer>& weak : std::exchange(unanswered_, {})) {
    if (const PendingAnswerPtr answer = weak.lock()) answer->expire();
  }
  creating_.clear();
  awaited_->leave_in_doubt({Code::kUnavailable, "the connection to the runtime's NRI socket was lost"});
}

/// Has the engine answer before the runtime gives up.
PendingAnswerPtr Front::pending(const Answer& answer) {
  const std::chrono::milliseconds limit = session_.request_timeout();
  auto pending = std::make_shared<PendingAnswer>(answer, limit / 2);
  std::erase_if(unanswered_, [](const std::weak_ptr<PendingAnswer>& weak) { return weak.expired(); });
  unanswered_.push_back(pending);
  session_.after(limit * 3 / 4, [weak = std::weak_ptr<PendingAnswer>(pending)] {
    if (const PendingAnswerPtr late = weak.lock()) late->expire();
  });
  return pending;
}

void Front::create(const std::string& payload, const Answer& answer) {
  Result<CreateRequest> request = read_create(payload, deps_.demand_rules);
  if (!request) return answer(request.error());
  refuse_former_create(*request);
  deps_.engine.create(make_create(pending(answer), *std::move(request), awaited_));
}

/// CRI-O says nothing of a create that fails after topolet has answered it. Nobody creates the same container twice at
/// a time, so that another create of it tells.
void Front::refuse_former_create(const CreateRequest& request) {
  const placement::ContainerKey& key = request.workload.key;
  const std::string former = std::exchange(creating_[{key.sandbox_id, key.name}], request.container_id);
  if (!former.empty() && former != request.container_id) awaited_->settle(Awaited::kCreate, former, not_created());
}

void Front::forget_create(const std::string& container_id) {
  std::erase_if(creating_, [&](const auto& entry) { return entry.second == container_id; });
}

void Front::update(const std::string& payload, const Answer& answer) {
  Result<UpdateRequest> request = read_update(payload);
  if (!request) return answer(request.error());
  if (const auto sent = deps_.own_updates.take(request->update))
    return return_own_update(*request, *sent, pending(answer));
  const std::string id = request->update.container_id;
  // Nobody updates a container twice at a time: an earlier update has ended without a word.
  awaited_->settle(Awaited::kUpdate, id,
                   unknown_outcome({Code::kUnavailable, "the runtime has begun another update of the container"}));
  const auto number = std::make_shared<std::atomic<std::uint64_t>>(0);
  session_.after(kUpdatePatience, [this, id, number] {
    if (*number == 0) return;
    awaited_->settle(Awaited::kUpdate, id, *number,
                     unknown_outcome({Code::kDeadlineExceeded, "the runtime has not said that it is done"}));
  });
  deps_.engine.update(make_update(pending(answer), *std::move(request), awaited_, number));
}

/// The container may have lost CPUs since it was sent. Where none are left, it stays where it is.
void Front::return_own_update(const UpdateRequest& request, const operations::ContainerCpuset& sent,
                              const PendingAnswerPtr& answer) {
  deps_.engine.on_own_update(
      request.update.container_id, sent, [request, answer](const operations::ContainerCpuset& now) {
        const bool is_as_asked = now.cpus.empty() || now.cpus == request.update.cpus;
        answer->give(is_as_asked ? std::string() : make_update_answer(request, {now.cpus, now.mems}));
      });
}

void Front::on_event(Event event, const LifecycleEvent& about, const Answer& answer) {
  switch (event) {
    case Event::kRunPodSandbox:
      return deps_.engine.run_sandbox(make_run_sandbox(pending(answer), about.sandbox));
    case Event::kStopPodSandbox:
      return deps_.engine.stop_sandbox(make_notice(pending(answer), about.sandbox.id));
    case Event::kRemovePodSandbox:
      std::erase_if(creating_, [&](const auto& entry) { return entry.first.first == about.sandbox.id; });
      return deps_.engine.remove_sandbox(make_notice(pending(answer), about.sandbox.id));
    case Event::kStartContainer:
      return deps_.engine.start(make_start(pending(answer), about.container_id, about.pid, awaited_));
    case Event::kRemoveContainer:
      return remove(about, answer);
    case Event::kPostCreateContainer:
      forget_create(about.container_id);
      awaited_->settle(Awaited::kCreate, about.container_id, done(about.container_id));
      break;
    case Event::kPostStartContainer:
      awaited_->settle(Awaited::kStart, about.container_id, done(about.container_id));
      break;
    case Event::kPostUpdateContainer:
      awaited_->settle(Awaited::kUpdate, about.container_id, done(about.container_id));
      break;
    case Event::kStopContainer:
      stop(about);
      break;
    default:
      break;
  }
  answer(std::string());
}

/// It has ended, whoever wanted that. One whose create has failed is stopped and removed, too.
void Front::stop(const LifecycleEvent& about) {
  forget_create(about.container_id);
  awaited_->settle(Awaited::kCreate, about.container_id, not_created());
  awaited_->settle(Awaited::kStart, about.container_id, done(about.container_id));
  deps_.engine.on_exits({{about.container_id, about.exit_code}});
}

void Front::remove(const LifecycleEvent& about, const Answer& answer) {
  stop(about);
  deps_.engine.remove(make_notice(pending(answer), about.container_id));
}

/// Comes after the create was answered. One that was not, as topolet was late or away, is not to be made.
void Front::validate(const std::string& payload, const Answer& answer) {
  lens::ValidateRequest request;
  if (!request.ParseFromString(payload)) return answer(make_refusal("topolet: the runtime's question cannot be read"));
  {
    const MutexLock lock(mutex_);
    plugins_.clear();
    for (const lens::PluginInstance& plugin : request.plugins())
      plugins_.push_back(plugin.index() + "-" + plugin.name());
  }
  if (!awaited_->has(Awaited::kCreate, request.container().id()))
    return answer(
        make_refusal("topolet: it was created without being placed, as topoletd was not asked or late; try again"));
  validator_.validate(session_, payload, answer);
}

}  // namespace topolet::nri
