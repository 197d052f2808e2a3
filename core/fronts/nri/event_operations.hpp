// Operations of the engine that are events of NRI: the runtime waits for the answer to each, and does nothing else
// meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/fronts/nri/awaited_events.hpp"
#include "core/fronts/nri/connection.hpp"
#include "core/fronts/nri/messages.hpp"
#include "core/operations/operation.hpp"

namespace topolet::nri {

/// The answer to one event, given once: by the engine, or by the front where the engine takes too long. Any thread.
class PendingAnswer {
 public:
  /// `patience`: how long the engine may wait for others before it answers.
  PendingAnswer(Answer answer, std::chrono::milliseconds patience) : answer_(std::move(answer)), patience_(patience) {}

  /// Returns false if it was answered before.
  bool give(Result<std::string> result);
  /// Whoever works on it need not any more.
  void abandon() { is_abandoned_ = true; }
  /// Answers with an error, and abandons it; does nothing if it was answered before.
  void expire();
  bool is_abandoned() const { return is_abandoned_; }
  std::chrono::steady_clock::time_point arrived() const { return arrived_; }
  std::chrono::milliseconds patience() const { return patience_; }

 private:
  const Answer answer_;
  const std::chrono::milliseconds patience_;
  const std::chrono::steady_clock::time_point arrived_ = std::chrono::steady_clock::now();
  std::atomic<bool> is_given_ = false;
  std::atomic<bool> is_abandoned_ = false;
};

using PendingAnswerPtr = std::shared_ptr<PendingAnswer>;

std::shared_ptr<operations::CreateOperation> make_create(PendingAnswerPtr answer, CreateRequest request,
                                                         std::shared_ptr<AwaitedEvents> awaited);
/// `number`: is set to that of the awaited outcome when it is admitted.
std::shared_ptr<operations::UpdateOperation> make_update(PendingAnswerPtr answer, UpdateRequest request,
                                                         std::shared_ptr<AwaitedEvents> awaited,
                                                         std::shared_ptr<std::atomic<std::uint64_t>> number);
/// `pid`: of the process that waits.
std::shared_ptr<operations::TargetOperation> make_start(PendingAnswerPtr answer, std::string container_id,
                                                        std::int64_t pid, std::shared_ptr<AwaitedEvents> awaited);
/// What the runtime has done already, or does whatever is answered.
std::shared_ptr<operations::TargetOperation> make_notice(PendingAnswerPtr answer, std::string target);
std::shared_ptr<operations::RunSandboxOperation> make_run_sandbox(PendingAnswerPtr answer, operations::Sandbox sandbox);

}  // namespace topolet::nri
