// A front end that is a plugin of the simulated runtime's NRI, with all that belongs to it but the socket.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "core/cri/call.hpp"
#include "core/fronts/nri/awaited_events.hpp"
#include "core/fronts/nri/event_operations.hpp"
#include "core/fronts/nri/own_updates.hpp"
#include "core/operations/operation.hpp"
#include "core/simulate/runtime_connection.hpp"

namespace topolet::simulate {

/// Takes the kubelet's calls as the runtime does: makes them events in NRI's own messages, has the daemon's code for
/// NRI make operations of these, and carries out what its answers say. As in a runtime, a create that waits for its
/// answer keeps the daemon's own updates waiting. A start or an update does not: what the daemon writes into the kernel
/// while one waits is not simulated, and its updates do the same.
class NriFront : public std::enable_shared_from_this<NriFront> {
 public:
  /// All must outlive this.
  struct Deps {
    operations::OperationHandler& engine;
    nri::OwnUpdates& own_updates;
    operations::DemandRules demand_rules;
    SimulatedRuntime& runtime;
    RuntimeConnection& connection;
    /// Runs some work later, in simulated time.
    std::function<void(std::chrono::milliseconds delay, std::function<void()> work)> after;
  };
  explicit NriFront(Deps deps) : deps_(std::move(deps)) {}
  ~NriFront() { awaited_->forget_all(); }
  NriFront(const NriFront&) = delete;
  NriFront& operator=(const NriFront&) = delete;

  void on_call(const std::shared_ptr<cri::Call>& call);
  void on_observed(const cri::ObservedMessage& answer);
  /// The daemon sends an update of its own. `send` runs with the request as it is then carried out.
  void on_own_update(const std::string& request, std::function<void(const std::string& request)> send);

 private:
  using CallPtr = std::shared_ptr<cri::Call>;

  void run_pod(const CallPtr& call);
  void create(const CallPtr& call);
  void on_create_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer);
  void start(const CallPtr& call);
  void on_start_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer);
  void update(const CallPtr& call);
  void on_update_answered(const CallPtr& call, const std::string& id, const Result<std::string>& answer);
  void stop(const CallPtr& call);
  void remove(const CallPtr& call);
  void end_pod(const CallPtr& call, bool is_removed);
  void tell_end(const std::string& container_id);
  nri::PendingAnswerPtr pending(void (NriFront::*on_answer)(const CallPtr&, const std::string&,
                                                            const Result<std::string>&),
                                const CallPtr& call, const std::string& id);
  static nri::PendingAnswerPtr finishing(const CallPtr& call);
  void in_turn(std::function<void()> event);
  void end_turn();

  const Deps deps_;
  const std::shared_ptr<nri::AwaitedEvents> awaited_ = std::make_shared<nri::AwaitedEvents>();
  bool is_busy_ = false;  ///< with an event that keeps others waiting
  std::deque<std::function<void()>> waiting_;
};

}  // namespace topolet::simulate
