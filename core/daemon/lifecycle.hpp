// What happens to pods and containers after they are made: start, update, stop, remove.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cri/call.hpp"
#include "core/daemon/room.hpp"

namespace topolet {

/// Lives on the loop's thread.
class Lifecycle {
 public:
  explicit Lifecycle(Room& room) : room_(room) {}

  /// Brings runtime and ledger together and then runs `then`, whether or not the runtime could be asked.
  std::function<void(std::function<void()> then)> reconcile;

  void run_pod_sandbox(const std::shared_ptr<Call>& call);
  void stop_pod_sandbox(const std::shared_ptr<Call>& call);
  void remove_pod_sandbox(const std::shared_ptr<Call>& call);
  void start_container(const std::shared_ptr<Call>& call);
  void stop_container(const std::shared_ptr<Call>& call);
  void remove_container(const std::shared_ptr<Call>& call);
  void update_container_resources(const std::shared_ptr<Call>& call);

  /// The runtime says that a container has exited, or it was removed.
  void ended(const std::string& container_id, const std::string& cause);
  /// A plugin wishes that a container be placed anew. What the kubelet bound, or what is not settled, stays.
  void re_place(const ReplacementWish& wish);

  /// Places those anew who hold CPUs that are not `allowed`.
  void leave_all_but(const CpuSet& allowed);

  /// Reads back what a container that runs may run on; a difference is audited and repaired.
  void verify(const std::string& container_id);
  /// The same without asking the runtime, where the kernel can be read and agrees.
  void glance(const std::string& container_id);

 private:
  /// Forwards untouched and answers; `then` runs in between, on the loop.
  void pass(const std::shared_ptr<Call>& call, std::function<void(const Answer&)> then);
  void pass_unread(const std::shared_ptr<Call>& call);
  void start_known(const std::shared_ptr<Call>& call, const std::string& id);
  void started(const std::shared_ptr<Call>& call, const std::string& id, const Answer& answer);
  void release_sandbox(const std::string& sandbox_id, const std::string& cause);
  std::string full_id(const std::string& container_id) const;
  std::string full_sandbox_id(const std::string& sandbox_id) const;
  void stopped(const std::shared_ptr<Call>& call, const std::string& container_id);
  std::vector<std::string> book_update(const Holding& before, const UpdateRequest& update);
  void send_update(const std::shared_ptr<Call>& call, const Holding& before, Lanes::OperationDone done);
  Decision decide_anew(const Holding& before, const ReplacementWish& wish) const;
  Decision decide_without(const Holding& before, const CpuSet& allowed) const;
  /// Places a container anew, once nothing else is under way for it: where `decide` says, or not at all.
  void move(const Holding& moved, std::function<std::optional<Decision>(const Holding&)> decide);
  void let_go_once_settled(const Holding& before);
  void take_back(const Holding& before, const Answer& answer);

  Room& room_;
};

}  // namespace topolet
