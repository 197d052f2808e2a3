#include "core/engine/handlers/handler_deps.hpp"

#include <utility>

namespace topolet::engine {

bool leaves_doubt(Code code) {
  return code == Code::kCancelled || code == Code::kDeadlineExceeded || code == Code::kUnavailable;
}

void forward(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call, std::string patch,
             std::function<void(const cri::RuntimeResponse&)> then) {
  call->forward(std::move(patch), [loop = &deps.loop, then = std::move(then)](const cri::RuntimeResponse& answer) {
    loop->post([then, answer] { then(answer); });
  });
}

void pass_through(const std::shared_ptr<cri::Call>& call) {
  call->forward("", [call](const cri::RuntimeResponse&) { call->finish(); });
}

std::string full_container_id(const Ledger& ledger, const std::string& container_id) {
  const Allocation* allocation = ledger.find_by_container(container_id);
  return allocation != nullptr ? allocation->container_id : container_id;
}

std::string full_sandbox_id(const Ledger& ledger, const std::string& sandbox_id) {
  const Pod* pod = ledger.find_pod(sandbox_id);
  return pod != nullptr ? pod->sandbox.id : sandbox_id;
}

}  // namespace topolet::engine
