#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/handlers/deps.hpp"

namespace topolet::engine {

/// The way of one StartContainer: the container is where it should be and nobody else is, then it starts, and then it
/// is read back where it runs. Lives as long as its call.
class StartContainer : public std::enable_shared_from_this<StartContainer> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call);

 private:
  StartContainer(const HandlerDeps& deps, std::shared_ptr<Call> call, std::string id)
      : deps_(deps), call_(std::move(call)), id_(std::move(id)) {}

  void wait_for_turn();
  void ask_runtime();
  void reject_unless_gone();
  bool can_be_started(const std::vector<Sandbox>& sandboxes, const std::vector<ContainerInfo>& containers) const;
  void wait_for_neighbours(const Status& turn);
  void lose_place();
  void commit_asked(const Status& clear);
  void forward_start();
  void answered(const Answer& answer);
  void end_turn();
  void finish();
  void reject(const Error& why);
  const Allocation* allocation() const;
  ContainerKey key() const;

  const HandlerDeps& deps_;
  const std::shared_ptr<Call> call_;
  std::string id_;
  bool asked_runtime_ = false;  ///< whose container it is
  bool was_started_before_ = false;
  ContainerQueues::OperationDone turn_over_;
};

}  // namespace topolet::engine
