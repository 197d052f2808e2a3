#include "core/simulate/in_answer_front.hpp"

#include <utility>

#include "core/cri/messages/requests.hpp"

namespace topolet::simulate {
namespace {

class InAnswerCreate final : public operations::CreateOperation {
 public:
  InAnswerCreate(std::shared_ptr<operations::CreateOperation> inner, RuntimeConnection& connection)
      : inner_(std::move(inner)), connection_(connection) {}

  std::chrono::steady_clock::time_point arrived() const override { return inner_->arrived(); }
  bool cancelled() const override { return inner_->cancelled(); }
  void pass() override { inner_->pass(); }
  void answer() override { inner_->answer(); }
  void reject(const Error& error) override { inner_->reject(error); }
  const placement::Workload& workload() const override { return inner_->workload(); }
  operations::Neighbours neighbours() const override { return operations::Neighbours::kInAnswer; }
  void admit(const operations::Admission& admission, operations::OnOutcome on_outcome) override {
    inner_->admit({admission.set, admission.added, {}},
                  [&connection = connection_, neighbours = admission.neighbours,
                   on_outcome = std::move(on_outcome)](const operations::Outcome& outcome) {
                    if (outcome.is_done()) tell(connection, neighbours);
                    on_outcome(outcome);
                  });
  }

 private:
  /// A neighbour that is gone, or that the runtime refuses to change, is none of the create's business.
  static void tell(RuntimeConnection& connection, const std::vector<operations::NeighbourUpdate>& neighbours) {
    for (const operations::NeighbourUpdate& neighbour : neighbours) {
      connection.send("UpdateContainerResources",
                      cri::make_update_container_resources(neighbour.container_id, neighbour.set), Caller::kDaemon,
                      [](const cri::RuntimeResponse&) {});
    }
  }

  const std::shared_ptr<operations::CreateOperation> inner_;
  RuntimeConnection& connection_;
};

}  // namespace

void InAnswerFront::create(std::shared_ptr<operations::CreateOperation> operation) {
  engine_.create(std::make_shared<InAnswerCreate>(std::move(operation), connection_));
}

}  // namespace topolet::simulate
