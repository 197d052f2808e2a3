// The front end for the CRI: between the proxy, which knows bytes, and the engine, which knows operations.
//
// The room core/fronts/cri, namespace topolet::cri. It may include core/base, core/operations, core/cri and
// core/cri/messages; neither the rooms socket and wire nor the engine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/log_fwd.hpp"
#include "core/cri/call.hpp"
#include "core/operations/operation.hpp"

namespace topolet::cri {

/// Hands intercepted calls to the engine as operations, and observed answers as exits. Any thread may call; requests
/// and answers are read on the caller's.
class CriFront {
 public:
  struct Deps {
    operations::OperationHandler& engine;
    operations::DemandRules demand_rules;
    Log& log;
  };
  explicit CriFront(Deps deps) : deps_(std::move(deps)) {}

  /// A call that makes, starts or resizes a container and cannot be read is answered INVALID_ARGUMENT. Any other such
  /// call is passed on: the runtime refuses it in its own words.
  void on_call(const std::shared_ptr<Call>& call);
  void on_observed(const ObservedMessage& answer);
  /// Returns the answer as the client is to have it; none where it stays as it came.
  std::optional<std::string> rewrite(const ObservedMessage& answer) const;
  void on_connected() { deps_.engine.on_connected(); }

 private:
  using HandleTarget = void (operations::OperationHandler::*)(std::shared_ptr<operations::TargetOperation>);
  void hand_over_target(const std::shared_ptr<Call>& call, HandleTarget handle);

  const Deps deps_;
};

}  // namespace topolet::cri
