#include "core/fronts/nri/event_operations.hpp"

#include <utility>

namespace topolet::nri {
namespace {

const Error kTooLate{Code::kDeadlineExceeded,
                     "topolet: topoletd had no answer before the runtime would have closed the connection; try again"};

operations::Outcome refused(const Error& why) {
  return {.kind = operations::Outcome::Kind::kRefused, .code = why.code, .message = why.message};
}

/// The part that all kinds of operations have in common.
template <class Kind>
class EventOperation : public Kind {
 public:
  explicit EventOperation(PendingAnswerPtr answer) : answer_(std::move(answer)) {}
  ~EventOperation() override { answer_->give(Error{Code::kUnavailable, "topolet: topoletd is ending; try again"}); }

  std::chrono::steady_clock::time_point arrived() const override { return answer_->arrived(); }
  bool cancelled() const override { return answer_->is_abandoned(); }
  std::optional<std::chrono::milliseconds> patience() const override { return answer_->patience(); }
  void pass() override { answer_->give(std::string()); }
  void answer() override { answer_->give(std::string()); }
  void reject(const Error& error) override { answer_->give(error); }

 protected:
  /// What comes of it is told by a later event, unless it is too late to answer. Returns its number among the awaited.
  std::uint64_t admit_as(const std::string& answer, Awaited kind, const std::string& container_id,
                         AwaitedEvents& awaited, operations::OnOutcome on_outcome) {
    const std::uint64_t number = awaited.add(kind, container_id, std::move(on_outcome));
    if (!answer_->give(answer)) awaited.settle(kind, container_id, number, refused(kTooLate));
    return number;
  }

  const PendingAnswerPtr answer_;
};

class CreateEvent final : public EventOperation<operations::CreateOperation> {
 public:
  CreateEvent(PendingAnswerPtr answer, CreateRequest request, std::shared_ptr<AwaitedEvents> awaited)
      : EventOperation(std::move(answer)), request_(std::move(request)), awaited_(std::move(awaited)) {}

  const placement::Workload& workload() const override { return request_.workload; }
  std::string container_id() const override { return request_.container_id; }
  operations::Neighbours neighbours() const override { return operations::Neighbours::kInAnswer; }
  void admit(const operations::Admission& admission, operations::OnOutcome on_outcome) override {
    admit_as(make_create_answer(admission), Awaited::kCreate, request_.container_id, *awaited_, std::move(on_outcome));
  }

 private:
  const CreateRequest request_;
  const std::shared_ptr<AwaitedEvents> awaited_;
};

class UpdateEvent final : public EventOperation<operations::UpdateOperation> {
 public:
  UpdateEvent(PendingAnswerPtr answer, UpdateRequest request, std::shared_ptr<AwaitedEvents> awaited,
              std::shared_ptr<std::atomic<std::uint64_t>> number)
      : EventOperation(std::move(answer)),
        request_(std::move(request)),
        awaited_(std::move(awaited)),
        number_(std::move(number)) {}

  const operations::ResourceUpdate& update() const override { return request_.update; }
  void admit(const operations::ContainerCpuset& set, operations::OnOutcome on_outcome) override {
    *number_ = admit_as(make_update_answer(request_, set), Awaited::kUpdate, request_.update.container_id, *awaited_,
                        std::move(on_outcome));
  }

 private:
  const UpdateRequest request_;
  const std::shared_ptr<AwaitedEvents> awaited_;
  const std::shared_ptr<std::atomic<std::uint64_t>> number_;
};

class StartEvent final : public EventOperation<operations::TargetOperation> {
 public:
  StartEvent(PendingAnswerPtr answer, std::string container_id, std::int64_t pid,
             std::shared_ptr<AwaitedEvents> awaited)
      : EventOperation(std::move(answer)),
        container_id_(std::move(container_id)),
        pid_(pid),
        awaited_(std::move(awaited)) {}

  const std::string& target() const override { return container_id_; }
  std::int64_t waiting_process() const override { return pid_; }
  void admit(operations::OnOutcome on_outcome) override {
    admit_as({}, Awaited::kStart, container_id_, *awaited_, std::move(on_outcome));
  }

 private:
  const std::string container_id_;
  const std::int64_t pid_;
  const std::shared_ptr<AwaitedEvents> awaited_;
};

class NoticeEvent final : public EventOperation<operations::TargetOperation> {
 public:
  NoticeEvent(PendingAnswerPtr answer, std::string target)
      : EventOperation(std::move(answer)), target_(std::move(target)) {}

  const std::string& target() const override { return target_; }
  void admit(operations::OnOutcome on_outcome) override {
    on_outcome({.kind = operations::Outcome::Kind::kDone, .id = target_});
  }

 private:
  const std::string target_;
};

class RunSandboxEvent final : public EventOperation<operations::RunSandboxOperation> {
 public:
  RunSandboxEvent(PendingAnswerPtr answer, operations::Sandbox sandbox)
      : EventOperation(std::move(answer)), sandbox_(std::move(sandbox)) {}

  const operations::Sandbox& sandbox() const override { return sandbox_; }
  void admit(operations::OnOutcome on_outcome) override {
    on_outcome({.kind = operations::Outcome::Kind::kDone, .id = sandbox_.id});
  }

 private:
  const operations::Sandbox sandbox_;
};

}  // namespace

bool PendingAnswer::give(Result<std::string> result) {
  if (is_given_.exchange(true)) return false;
  answer_(std::move(result));
  return true;
}

void PendingAnswer::expire() {
  if (!give(kTooLate)) return;
  abandon();
}

std::shared_ptr<operations::CreateOperation> make_create(PendingAnswerPtr answer, CreateRequest request,
                                                         std::shared_ptr<AwaitedEvents> awaited) {
  return std::make_shared<CreateEvent>(std::move(answer), std::move(request), std::move(awaited));
}

std::shared_ptr<operations::UpdateOperation> make_update(PendingAnswerPtr answer, UpdateRequest request,
                                                         std::shared_ptr<AwaitedEvents> awaited,
                                                         std::shared_ptr<std::atomic<std::uint64_t>> number) {
  return std::make_shared<UpdateEvent>(std::move(answer), std::move(request), std::move(awaited), std::move(number));
}

std::shared_ptr<operations::TargetOperation> make_start(PendingAnswerPtr answer, std::string container_id,
                                                        std::int64_t pid, std::shared_ptr<AwaitedEvents> awaited) {
  return std::make_shared<StartEvent>(std::move(answer), std::move(container_id), pid, std::move(awaited));
}

std::shared_ptr<operations::TargetOperation> make_notice(PendingAnswerPtr answer, std::string target) {
  return std::make_shared<NoticeEvent>(std::move(answer), std::move(target));
}

std::shared_ptr<operations::RunSandboxOperation> make_run_sandbox(PendingAnswerPtr answer,
                                                                  operations::Sandbox sandbox) {
  return std::make_shared<RunSandboxEvent>(std::move(answer), std::move(sandbox));
}

}  // namespace topolet::nri
