#include "core/simulate/nri_front.hpp"

#include <atomic>
#include <utility>

#include "core/cri/messages/ended_containers.hpp"
#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"
#include "core/simulate/nri_messages.hpp"
#include "core/simulate/runtime_messages.hpp"

namespace topolet::simulate {
namespace {

using nri::Awaited;
using operations::Outcome;

/// The runtimes' default plugin_request_timeout. The engine may wait for half of it, as with the daemon's front.
constexpr std::chrono::milliseconds kRequestTimeout{2000};
/// The exit code of a container that could not be started, as in containerd.
constexpr std::int32_t kStartFailed = 128;

Outcome done_with(const std::string& id) { return {.kind = Outcome::Kind::kDone, .id = id}; }

Outcome refused_by(const cri::RuntimeResponse& answer) {
  return {.kind = Outcome::Kind::kRefused, .code = answer.code, .message = answer.message};
}

nri::PendingAnswerPtr unheard() {
  return std::make_shared<nri::PendingAnswer>([](const Result<std::string>&) {}, kRequestTimeout / 2);
}

std::string target_of(const cri::Call& call) { return read_request<lens::Target>(call.request()).id(); }

}  // namespace

void NriFront::on_call(const CallPtr& call) {
  const std::string_view method = call->method();
  if (method == "RunPodSandbox") return run_pod(call);
  if (method == "CreateContainer") return create(call);
  if (method == "StartContainer") return start(call);
  if (method == "UpdateContainerResources") return update(call);
  if (method == "StopContainer") return stop(call);
  if (method == "RemoveContainer") return remove(call);
  if (method == "StopPodSandbox") return end_pod(call, false);
  if (method == "RemovePodSandbox") return end_pod(call, true);
  call->forward("", [call](const cri::RuntimeResponse&) { call->finish(); });
}

void NriFront::on_observed(const cri::ObservedMessage& answer) {
  for (const operations::ExitSeen& exit : cri::read_ended_containers(answer)) tell_end(exit.container_id);
}

/// Whoever is answered runs only while the daemon lives, and this with it.
nri::PendingAnswerPtr NriFront::pending(void (NriFront::*on_answer)(const CallPtr&, const std::string&,
                                                                    const Result<std::string>&),
                                        const CallPtr& call, const std::string& id) {
  auto pending = std::make_shared<nri::PendingAnswer>(
      [weak = weak_from_this(), on_answer, call, id](const Result<std::string>& answer) {
        const std::shared_ptr<NriFront> self = weak.lock();
        if (self && !self->deps_.connection.killed()) ((*self).*on_answer)(call, id, answer);
      },
      kRequestTimeout / 2);
  deps_.after(kRequestTimeout * 3 / 4, [weak = std::weak_ptr(pending)] {
    if (const nri::PendingAnswerPtr late = weak.lock()) late->expire();
  });
  return pending;
}

/// The answer to an event after which the call is over, whatever it says.
nri::PendingAnswerPtr NriFront::finishing(const CallPtr& call) {
  return std::make_shared<nri::PendingAnswer>([call](const Result<std::string>&) { call->finish(); },
                                              kRequestTimeout / 2);
}

void NriFront::in_turn(std::function<void()> event) {
  if (is_busy_) return waiting_.push_back(std::move(event));
  is_busy_ = true;
  event();
}

void NriFront::end_turn() {
  is_busy_ = false;
  if (waiting_.empty()) return;
  const std::function<void()> next = std::move(waiting_.front());
  waiting_.pop_front();
  in_turn(next);
}

void NriFront::run_pod(const CallPtr& call) {
  call->forward("", [this, call](const cri::RuntimeResponse& answer) {
    lens::Target made;
    if (answer.code != Code::kOk || !made.ParseFromString(answer.body)) return call->finish();
    const auto about = nri::read_event(
        "RunPodSandbox", nri_run_pod(read_request<lens::RunPodSandboxRequest>(call->request()), made.id()));
    if (!about) return call->reject(about.error());
    deps_.engine.run_sandbox(nri::make_run_sandbox(finishing(call), about->sandbox));
  });
}

void NriFront::create(const CallPtr& call) {
  const auto request = read_request<lens::CreateContainerRequest>(call->request());
  const std::string id = deps_.runtime.next_container_id(request);
  // It was made before: nobody is asked again.
  if (id.empty()) return call->forward("", [call](const cri::RuntimeResponse&) { call->finish(); });
  const std::string event = nri_create(request, id, deps_.runtime.runtime_handler_of(request.sandbox_id()));
  in_turn([this, call, id, event] {
    auto told = nri::read_create(event, deps_.demand_rules);
    if (!told) return on_create_answered(call, id, told.error());
    deps_.engine.create(nri::make_create(pending(&NriFront::on_create_answered, call, id), *std::move(told), awaited_));
  });
}

void NriFront::on_create_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer) {
  if (!answer) {
    call->reject(answer.error());
    tell_end(id);
    return end_turn();
  }
  const NriCreateAnswer told = read_nri_create_answer(*answer);
  // A neighbour that is gone, or that the runtime refuses to change, is none of the create's business.
  for (const operations::NeighbourUpdate& neighbour : told.neighbours) {
    deps_.connection.send("UpdateContainerResources",
                          cri::make_update_container_resources(neighbour.container_id, neighbour.set), Caller::kDaemon,
                          [](const cri::RuntimeResponse&) {});
  }
  call->forward(told.patch, [this, call, id](const cri::RuntimeResponse& made) {
    // The plugin is told what the runtime did, whether its client hears of it or not.
    awaited_->settle(Awaited::kCreate, id, deps_.runtime.has_container(id) ? done_with(id) : refused_by(made));
    call->finish();
    end_turn();
  });
}

void NriFront::start(const CallPtr& call) {
  const std::string id = target_of(*call);
  deps_.engine.start(nri::make_start(pending(&NriFront::on_start_answered, call, id), id, 0, awaited_));
}

void NriFront::on_start_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer) {
  if (!answer) {
    deps_.runtime.exit(id, kStartFailed);
    call->reject(answer.error());
    return tell_end(id);
  }
  call->forward("", [this, call, id](const cri::RuntimeResponse& started) {
    awaited_->settle(Awaited::kStart, id, started.code == Code::kOk ? done_with(id) : refused_by(started));
    call->finish();
  });
}

void NriFront::update(const CallPtr& call) {
  const auto request = read_request<lens::UpdateContainerResourcesRequest>(call->request());
  auto told = nri::read_update(nri_update(request));
  if (!told) return call->reject(told.error());
  deps_.engine.update(nri::make_update(pending(&NriFront::on_update_answered, call, request.container_id()),
                                       *std::move(told), awaited_, std::make_shared<std::atomic<std::uint64_t>>(0)));
}

void NriFront::on_update_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer) {
  if (!answer) return call->reject(answer.error());
  call->forward(patch_of_nri_update_answer(*answer), [this, call, id](const cri::RuntimeResponse& updated) {
    // No event tells of one that has failed.
    awaited_->settle(Awaited::kUpdate, id,
                     updated.code == Code::kOk ? done_with(id) : nri::unknown_outcome({updated.code, updated.message}));
    call->finish();
  });
}

void NriFront::on_own_update(const std::string& request, std::function<void(const std::string& request)> send) {
  in_turn([this, request, send = std::move(send)] {
    const auto told = nri::read_update(nri_update(read_request<lens::UpdateContainerResourcesRequest>(request)));
    const auto sent = told ? deps_.own_updates.take(told->update) : std::nullopt;
    if (!sent) {
      send(request);
      return end_turn();
    }
    const auto carry_out = [weak = weak_from_this(), request, sent = *sent,
                            send](const operations::ContainerCpuset& now) {
      const std::shared_ptr<NriFront> self = weak.lock();
      if (!self || self->deps_.connection.killed()) return;
      send(request + cri::patch_update_container_resources({now.cpus, sent.mems}));
      self->end_turn();
    };
    deps_.engine.on_own_update(told->update.container_id, *sent, carry_out);
  });
}

/// The event StopContainer.
void NriFront::tell_end(const std::string& container_id) {
  awaited_->settle(Awaited::kCreate, container_id,
                   {.kind = Outcome::Kind::kRefused, .code = Code::kInternal, .message = "it was not created"});
  awaited_->settle(Awaited::kStart, container_id, done_with(container_id));
  deps_.engine.on_exits({{container_id, deps_.runtime.exit_code_of(container_id)}});
}

void NriFront::stop(const CallPtr& call) {
  call->forward("", [this, call](const cri::RuntimeResponse& answer) {
    if (answer.code == Code::kOk) tell_end(target_of(*call));
    call->finish();
  });
}

void NriFront::remove(const CallPtr& call) {
  call->forward("", [this, call](const cri::RuntimeResponse&) {
    tell_end(target_of(*call));
    deps_.engine.remove(nri::make_notice(finishing(call), target_of(*call)));
  });
}

void NriFront::end_pod(const CallPtr& call, bool is_removed) {
  const std::string id = target_of(*call);
  const std::vector<std::string> containers = deps_.runtime.containers_in(id);
  call->forward("", [this, call, id, containers, is_removed](const cri::RuntimeResponse&) {
    for (const std::string& container : containers) {
      tell_end(container);
      if (is_removed) deps_.engine.remove(nri::make_notice(unheard(), container));
    }
    const auto notice = nri::make_notice(finishing(call), id);
    is_removed ? deps_.engine.remove_sandbox(notice) : deps_.engine.stop_sandbox(notice);
  });
}

}  // namespace topolet::simulate
