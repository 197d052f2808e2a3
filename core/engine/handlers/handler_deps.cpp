#include "core/engine/handlers/handler_deps.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace topolet::engine {
namespace {

/// How long it takes at most to find out that a container is where it was: longer than a refused update waits to be
/// sent again.
constexpr std::chrono::seconds kBackTimeout{6};

/// One after the other.
void await_all_back(const HandlerDeps& deps, std::vector<std::string> container_ids, std::function<void()> then) {
  if (container_ids.empty()) return then();
  const std::string next = std::move(container_ids.back());
  container_ids.pop_back();
  deps.mover.when_converged(next, kBackTimeout,
                            [&deps, left = std::move(container_ids), then = std::move(then)](const Status&) {
                              await_all_back(deps, left, then);
                            });
}

}  // namespace

operations::OnOutcome on_loop(const HandlerDeps& deps, operations::OnOutcome then) {
  return deps.awaited_outcomes.await([loop = &deps.loop, then = std::move(then)](const operations::Outcome& outcome) {
    loop->post([then, outcome] { then(outcome); });
  });
}

void withdraw_moves_for_room(const HandlerDeps& deps, const std::vector<Allocation>& moved, const std::string& for_whom,
                             const std::string& why, std::function<void()> then) {
  std::vector<std::string> back;
  for (const Allocation& before : moved) {
    const Allocation* now = deps.ledger().find(before.workload.key);
    if (now == nullptr || now->vacating.empty()) continue;
    back.push_back(now->container_id);
    deps.committer.commit(
        event::ChangeReverted{before, fmt::format("it stays where it was, and makes no room for {}: {}", for_whom, why),
                              /*may_be_there=*/true});
  }
  deps.committer.when_durable(
      [&deps, back = std::move(back), then = std::move(then)] { await_all_back(deps, back, then); });
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
