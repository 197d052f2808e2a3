// The way of one CreateContainer: from the request to the answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/handlers/deps.hpp"

namespace topolet::engine {

/// Lives as long as its call. Reads from top to bottom: read → decide → commit → wait for the neighbours → forward →
/// commit the answer.
class CreateContainer : public std::enable_shared_from_this<CreateContainer> {
 public:
  static void handle(const HandlerDeps& deps, const std::shared_ptr<Call>& call);

 private:
  CreateContainer(const HandlerDeps& deps, std::shared_ptr<Call> call) : deps_(deps), call_(std::move(call)) {}

  void read();
  void identify();
  Status read_annotations();
  void pass_foreign();
  void commit_foreign(const Answer& answer);

  void consider();
  void repeat(const Allocation& held);
  void decide();
  bool ask_runtime_first();
  std::vector<ContainerKey> superseded(const std::vector<ContainerKey>& in_sandbox) const;
  bool has_earlier_attempt(const std::vector<ContainerKey>& in_sandbox,
                           const std::vector<ContainerKey>& superseded) const;
  Plan plan(const std::vector<ContainerKey>& superseded) const;
  void deny(Code code, const Decision& decision);

  void wait_for_neighbours();
  void neighbours_are_stuck(const Error& error);
  void forward_placed();
  void withdraw(const Error& error, const char* cause);
  void answered(const Answer& answer);
  void confirmed(const Answer& answer);
  void follow_up(const std::string& container_id);
  void refused(const Answer& answer);

  const HandlerDeps& deps_;
  const std::shared_ptr<Call> call_;
  Workload workload_;
  CpusetTarget sent_;
  bool was_in_doubt_ = false;
  bool asked_runtime_ = false;
  std::string note_;  ///< for the decision's reason
};

}  // namespace topolet::engine
