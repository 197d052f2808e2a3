// The way of one CreateContainer: from the request to the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/cri/call.hpp"
#include "core/daemon/room.hpp"

namespace topolet {

/// Handles CreateContainer calls; many may be under way. Lives on the loop's thread.
class Creates {
 public:
  explicit Creates(Room& room) : room_(room) {}

  /// Brings runtime and ledger together and then runs `then`, whether or not the runtime could be asked.
  std::function<void(std::function<void()> then)> reconcile;

  /// Hears of each container that was made, before the answer goes back.
  std::function<void(const ContainerKey& key)> bound;

  void handle(const std::shared_ptr<Call>& call);

 private:
  struct Creation {
    std::shared_ptr<Call> call;
    Workload workload;
    CpusetTarget sent;
    bool was_in_doubt = false;
    bool asked_runtime = false;
    std::string note;  ///< for the decision's reason
  };
  using CreationPtr = std::shared_ptr<Creation>;

  void identify(Creation& creation) const;
  Status take_settings(Creation& creation) const;
  void consider(const CreationPtr& creation);
  bool has_earlier_attempt(const ContainerKey& key) const;
  bool ask_runtime_first(const CreationPtr& creation);
  void pass_foreign(const CreationPtr& creation);
  void resume(const CreationPtr& creation, const Holding& holding);
  void release_earlier_attempts(const ContainerKey& key);
  void decide(const CreationPtr& creation);
  void deny(const CreationPtr& creation, Code code, const Decision& decision);
  void keep_pod_together(const Workload& workload, const NodeSet& nodes);
  void forward(const CreationPtr& creation);
  void withdraw(const CreationPtr& creation, const Error& error, const char* cause);
  void answered(const CreationPtr& creation, const Answer& answer);
  void finish_bound(const CreationPtr& creation, const Answer& answer);

  Room& room_;
};

/// True for the codes that leave open whether the runtime did what it was asked to.
bool leaves_doubt(Code code);

}  // namespace topolet
