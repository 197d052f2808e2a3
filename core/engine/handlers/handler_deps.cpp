#include "core/engine/handlers/handler_deps.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::engine {

operations::OnOutcome on_loop(const HandlerDeps& deps, operations::OnOutcome then) {
  return deps.awaited_outcomes.await([loop = &deps.loop, then = std::move(then)](const operations::Outcome& outcome) {
    loop->post([then, outcome] { then(outcome); });
  });
}

void withdraw_moves_for_room(Committer& committer, const std::vector<Allocation>& moved, const std::string& for_whom,
                             const std::string& why) {
  for (const Allocation& before : moved) {
    const Allocation* now = committer.ledger().find(before.workload.key);
    if (now == nullptr || now->vacating.empty()) continue;
    committer.commit(event::ChangeReverted{
        before, fmt::format("it stays where it was, and makes no room for {}: {}", for_whom, why), /*may_be_there=*/true});
  }
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
