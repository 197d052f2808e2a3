// A front end that tells the neighbours of a new container with the answer to its create, as NRI does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/operations/operation.hpp"
#include "core/simulate/runtime_connection.hpp"

namespace topolet::simulate {

/// Stands between another front and the engine: what it hands over is the same but for Neighbours::kInAnswer. The
/// simulated runtime carries out the neighbours' sets with the create, before the engine hears of the outcome.
class InAnswerFront final : public operations::OperationHandler {
 public:
  /// Both must outlive this and every operation.
  InAnswerFront(operations::OperationHandler& engine, RuntimeConnection& connection)
      : engine_(engine), connection_(connection) {}

  void create(std::shared_ptr<operations::CreateOperation> operation) override;
  void update(std::shared_ptr<operations::UpdateOperation> operation) override { engine_.update(std::move(operation)); }
  void start(std::shared_ptr<operations::TargetOperation> operation) override { engine_.start(std::move(operation)); }
  void stop(std::shared_ptr<operations::TargetOperation> operation) override { engine_.stop(std::move(operation)); }
  void remove(std::shared_ptr<operations::TargetOperation> operation) override { engine_.remove(std::move(operation)); }
  void run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) override {
    engine_.run_sandbox(std::move(operation));
  }
  void stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) override {
    engine_.stop_sandbox(std::move(operation));
  }
  void remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) override {
    engine_.remove_sandbox(std::move(operation));
  }
  void on_exits(std::vector<operations::ExitSeen> exits) override { engine_.on_exits(std::move(exits)); }
  void on_connected() override { engine_.on_connected(); }
  void on_own_update(std::string container_id, operations::ContainerCpuset sent,
                     std::function<void(const operations::ContainerCpuset&)> tell) override {
    engine_.on_own_update(std::move(container_id), std::move(sent), std::move(tell));
  }
  bool shows_quotas() const override { return engine_.shows_quotas(); }
  std::optional<operations::CfsQuota> quota_to_show(const std::string& container_id) const override {
    return engine_.quota_to_show(container_id);
  }

 private:
  operations::OperationHandler& engine_;
  RuntimeConnection& connection_;
};

}  // namespace topolet::simulate
