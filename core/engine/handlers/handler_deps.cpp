#include "core/engine/handlers/handler_deps.hpp"

#include <utility>

namespace topolet::engine {
operations::OnOutcome on_loop(const HandlerDeps& deps, operations::OnOutcome then) {
  return deps.awaited_outcomes.await([loop = &deps.loop, then = std::move(then)](const operations::Outcome& outcome) {
    loop->post([then, outcome] { then(outcome); });
  });
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
