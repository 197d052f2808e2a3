#include "core/engine/handlers/room_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

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

bool makes_room_for(const Allocation& allocation, const placement::ContainerKey& key) {
  return allocation.moved_from && allocation.moved_from->newcomer == key;
}

}  // namespace

bool is_room_being_made(const Ledger& ledger, const placement::ContainerKey& key) {
  const auto& allocations = ledger.allocations();
  return std::any_of(allocations.begin(), allocations.end(),
                     [&key](const auto& entry) { return makes_room_for(entry.second, key); });
}

void withdraw_moves_for_room(const HandlerDeps& deps, const placement::Workload& newcomer, const std::string& why,
                             std::function<void()> then) {
  std::vector<placement::ContainerKey> moved;
  std::vector<std::string> back;
  for (const auto& [key, allocation] : deps.ledger().allocations()) {
    if (!makes_room_for(allocation, newcomer.key)) continue;
    moved.push_back(key);
    back.push_back(allocation.container_id);
  }
  const std::string reason =
      fmt::format("it stays where it was, and makes no room for {}: {}", display_name(newcomer), why);
  for (const placement::ContainerKey& key : moved) deps.committer.commit(event::MoveWithdrawn{key, reason});
  deps.committer.when_durable(
      [&deps, back = std::move(back), then = std::move(then)] { await_all_back(deps, back, then); });
}

}  // namespace topolet::engine
