// A handler of operations that come as CRI calls, with the parts of the engine that it works with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/handlers/handler_deps.hpp"
#include "core/fronts/cri/cri_operations.hpp"
#include "tests/engine/converge_test.hpp"
#include "tests/engine/scripted_call.hpp"

namespace topolet::engine {

class HandlerTest : public ConvergeTest {
 protected:
  ~HandlerTest() override {
    for (const auto& call : calls_) call->drop();
  }

  static constexpr std::chrono::minutes kOutcomePatience{4};

  /// The engine's tick has operations end whose outcomes have not come.
  void expire_outcomes() {
    awaited_outcomes_.expire();
    loop_.run();
  }
  /// The kubelet makes the call, and the handler does what it can before the runtime answers.
  template <class Handler, class Read>
  std::shared_ptr<ScriptedCall> call(const std::string& method, std::string request, const Read& read) {
    calls_.push_back(std::make_shared<ScriptedCall>(method, std::move(request)));
    const std::shared_ptr<ScriptedCall> made = calls_.back();
    Handler::handle(deps(), *read(made));
    loop_.run();
    return made;
  }

  /// The parts, once begin() has made them.
  const HandlerDeps& deps() {
    if (!deps_) {
      kubelet_static_ = std::make_unique<KubeletStatic>(*committer_, "", *log_);
      deps_ = std::make_unique<HandlerDeps>(HandlerDeps{loop_, *committer_, placer_, *cpusets_, *mover_, *exits_,
                                                        *rebalancer_, *reconciler_, placed_handlers_, *kubelet_static_,
                                                        awaited_outcomes_, demand_rules_, *log_});
    }
    return *deps_;
  }

 private:
  const operations::DemandRules demand_rules_{};
  AwaitedOutcomes awaited_outcomes_{loop_.clock(), kOutcomePatience};
  std::unique_ptr<KubeletStatic> kubelet_static_;
  std::unique_ptr<HandlerDeps> deps_;
  std::vector<std::shared_ptr<ScriptedCall>> calls_;
};

}  // namespace topolet::engine
