#include "core/fronts/cri/cri_operations.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/base/log.hpp"
#include "core/cri/messages/requests.hpp"

namespace topolet::cri {
namespace {

/// True for the codes that leave open whether the runtime did what it was asked to.
bool leaves_doubt(Code code) {
  return code == Code::kCancelled || code == Code::kDeadlineExceeded || code == Code::kUnavailable;
}

/// Reads an answer of no interest beyond its code.
operations::Outcome outcome_of(const RuntimeResponse& answer) {
  using Kind = operations::Outcome::Kind;
  if (answer.code == Code::kOk) return {.kind = Kind::kDone};
  return {.kind = leaves_doubt(answer.code) ? Kind::kUnknown : Kind::kRefused,
          .code = answer.code,
          .message = answer.message};
}

using ReadId = Result<std::string> (*)(const std::string& response);

/// Reads the answer to a call that creates something, whose id `read` finds.
operations::Outcome outcome_of_creation(const RuntimeResponse& answer, ReadId read, std::string_view method, Log& log) {
  operations::Outcome outcome = outcome_of(answer);
  if (!outcome.is_done()) return outcome;
  Result<std::string> id = read(answer.body);
  if (!id) {
    log.error("{}: {}", method, id.error().message);
    return {.kind = operations::Outcome::Kind::kUnknown, .code = Code::kOk, .message = id.error().message};
  }
  outcome.id = *std::move(id);
  return outcome;
}

/// The part that all kinds of operations have in common.
template <class Kind>
class CallOperation : public Kind {
 public:
  explicit CallOperation(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  std::chrono::steady_clock::time_point arrived() const override { return call_->arrived(); }
  bool cancelled() const override { return call_->cancelled(); }
  void pass() override {
    call_->forward("", [call = call_](const RuntimeResponse&) { call->finish(); });
  }
  void answer() override {
    if (has_answer_->load()) return call_->finish();
    call_->reject({Code::kDeadlineExceeded, "topolet: the runtime has not answered within placement.pending-timeout"});
  }
  void reject(const Error& error) override { call_->reject(error); }

 protected:
  /// Sends the call with `patch` behind its bytes.
  void forward(std::string patch, std::function<operations::Outcome(const RuntimeResponse&)> read,
               operations::OnOutcome on_outcome) {
    call_->forward(std::move(patch), [has_answer = has_answer_, read = std::move(read),
                                      on_outcome = std::move(on_outcome)](const RuntimeResponse& answer) {
      has_answer->store(true);
      on_outcome(read(answer));
    });
  }

 private:
  const std::shared_ptr<Call> call_;
  /// Set once the runtime has answered; apart, as the call may outlive the operation.
  const std::shared_ptr<std::atomic<bool>> has_answer_ = std::make_shared<std::atomic<bool>>(false);
};

class CreateCall final : public CallOperation<operations::CreateOperation> {
 public:
  CreateCall(std::shared_ptr<Call> call, placement::Workload workload, Log& log)
      : CallOperation(std::move(call)), workload_(std::move(workload)), log_(log) {}

  const placement::Workload& workload() const override { return workload_; }
  operations::Neighbours neighbours() const override { return operations::Neighbours::kByUs; }
  void admit(const operations::Admission& admission, operations::OnOutcome on_outcome) override {
    std::string patch;
    if (const auto& set = admission.set) patch = patch_create_container(*set, admission.added);
    forward(
        std::move(patch),
        [&log = log_](const RuntimeResponse& answer) {
          return outcome_of_creation(answer, read_create_container_response, "CreateContainer", log);
        },
        std::move(on_outcome));
  }

 private:
  const placement::Workload workload_;
  Log& log_;
};

class UpdateCall final : public CallOperation<operations::UpdateOperation> {
 public:
  UpdateCall(std::shared_ptr<Call> call, operations::ResourceUpdate update)
      : CallOperation(std::move(call)), update_(std::move(update)) {}

  const operations::ResourceUpdate& update() const override { return update_; }
  void admit(const operations::ContainerCpuset& set, operations::OnOutcome on_outcome) override {
    operations::ContainerCpuset told = set;
    // The ledger may know of these files only once the update is done.
    for (const auto& [file, value] : update_.unified) told.unified.erase(file);
    forward(patch_update_container_resources(told), outcome_of, std::move(on_outcome));
  }

 private:
  const operations::ResourceUpdate update_;
};

class TargetCall final : public CallOperation<operations::TargetOperation> {
 public:
  TargetCall(std::shared_ptr<Call> call, std::string target)
      : CallOperation(std::move(call)), target_(std::move(target)) {}

  const std::string& target() const override { return target_; }
  void admit(operations::OnOutcome on_outcome) override { forward("", outcome_of, std::move(on_outcome)); }

 private:
  const std::string target_;
};

class RunSandboxCall final : public CallOperation<operations::RunSandboxOperation> {
 public:
  RunSandboxCall(std::shared_ptr<Call> call, operations::Sandbox sandbox, Log& log)
      : CallOperation(std::move(call)), sandbox_(std::move(sandbox)), log_(log) {}

  const operations::Sandbox& sandbox() const override { return sandbox_; }
  void admit(operations::OnOutcome on_outcome) override {
    forward(
        "",
        [&log = log_](const RuntimeResponse& answer) {
          return outcome_of_creation(answer, read_run_pod_sandbox_response, "RunPodSandbox", log);
        },
        std::move(on_outcome));
  }

 private:
  const operations::Sandbox sandbox_;
  Log& log_;
};

}  // namespace

Result<std::shared_ptr<operations::CreateOperation>> read_create(std::shared_ptr<Call> call,
                                                                 const operations::DemandRules& rules, Log& log) {
  Result<placement::Workload> workload = read_create_container(call->request(), rules);
  if (!workload) return workload.error();
  return std::shared_ptr<operations::CreateOperation>(
      std::make_shared<CreateCall>(std::move(call), *std::move(workload), log));
}

Result<std::shared_ptr<operations::UpdateOperation>> read_update(std::shared_ptr<Call> call) {
  Result<operations::ResourceUpdate> update = read_update_container_resources(call->request());
  if (!update) return update.error();
  return std::shared_ptr<operations::UpdateOperation>(
      std::make_shared<UpdateCall>(std::move(call), *std::move(update)));
}

Result<std::shared_ptr<operations::TargetOperation>> read_target(std::shared_ptr<Call> call) {
  Result<std::string> target = read_target_id(call->request());
  if (!target) return target.error();
  return std::shared_ptr<operations::TargetOperation>(
      std::make_shared<TargetCall>(std::move(call), *std::move(target)));
}

Result<std::shared_ptr<operations::RunSandboxOperation>> read_run_sandbox(std::shared_ptr<Call> call, Log& log) {
  Result<operations::Sandbox> sandbox = read_run_pod_sandbox(call->request());
  if (!sandbox) return sandbox.error();
  return std::shared_ptr<operations::RunSandboxOperation>(
      std::make_shared<RunSandboxCall>(std::move(call), *std::move(sandbox), log));
}

}  // namespace topolet::cri
