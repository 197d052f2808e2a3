#include "core/daemon/foreign_handlers.hpp"

namespace topolet::daemon {
namespace {

/// As control.proto says.
constexpr std::size_t kMostForeignTold = 100;

}  // namespace

void tell_foreign(const engine::EngineSummary& engine, control::v1::StatusResponse& response) {
  for (const auto& [handler, found] : engine.foreign) {
    if (static_cast<std::size_t>(response.foreign_handlers_size()) == kMostForeignTold) break;
    control::v1::ForeignHandler& told = *response.add_foreign_handlers();
    told.set_handler(handler);
    told.set_containers(found.containers);
    told.set_obstacle(found.obstacle);
  }
  response.set_confines_foreign(engine.confines_foreign);
  for (const auto& [pod, why] : engine.unconfined) {
    if (response.unconfined_pods().size() == kMostForeignTold) break;
    (*response.mutable_unconfined_pods())[pod] = why;
  }
}

std::map<std::string, std::uint32_t> count_foreign(const engine::EngineSummary& engine) {
  std::map<std::string, std::uint32_t> counts;
  for (const auto& [handler, found] : engine.foreign) counts[handler] = found.containers;
  return counts;
}

}  // namespace topolet::daemon
