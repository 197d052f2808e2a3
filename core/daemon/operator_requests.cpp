// The daemon's answers to what the operator asks of the engine on the control socket.
#include <chrono>
#include <utility>

#include "core/daemon/daemon.hpp"

namespace topolet::daemon {
namespace {

/// The time that the operator waits for the engine.
constexpr std::chrono::seconds kPatience{5};
/// Less than the command waits for.
constexpr std::chrono::seconds kHealPatience{25};

}  // namespace

Status Daemon::set_capacity(const control::v1::SetCapacityRequest& request,
                            control::v1::SetCapacityResponse& response) {
  if (request.has_milli() && request.source() == engine::kMeasuredSource) {
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is the source of what topoletd measures itself; name another", request.source())};
  }
  engine::Engine::CapacityRequest asked{.node = request.node(), .source = request.source()};
  if (request.has_milli()) asked.milli = request.milli();
  asked.until = std::chrono::milliseconds(request.until_ms());
  const auto set = engine_->set_capacity(std::move(asked), kPatience);
  if (!set) return set.error();
  response.set_milli(set->milli);
  response.set_nominal_milli(set->nominal_milli);
  response.set_was_told(set->was_told);
  return {};
}

Status Daemon::heal(const control::v1::HealRequest& request, control::v1::HealResponse& response) {
  const auto healed = engine_->heal(request.dry_run(), kHealPatience);
  if (!healed) return healed.error();
  for (const engine::HealReport::Moved& moved : healed->moved) {
    control::v1::HealResponse::Moved& told = *response.add_moved();
    told.set_container(moved.container);
    told.set_from_cpus(moved.from.to_string());
    told.set_to_cpus(moved.to.to_string());
    told.set_from_nodes(moved.from_nodes.to_string());
    told.set_to_nodes(moved.to_nodes.to_string());
    told.set_reason(moved.reason);
  }
  for (const engine::HealReport::Left& left : healed->left) {
    control::v1::HealResponse::Left& told = *response.add_left();
    told.set_container(left.container);
    told.set_why(left.why);
  }
  return {};
}

Status Daemon::release(const control::v1::ReleaseRequest& request, control::v1::ReleaseResponse& response) {
  const auto released = engine_->release(request.cpusets(), kHealPatience);
  if (!released) return released.error();
  response.set_released(released->released);
  for (const engine::ReleaseReport::Untold& untold : released->untold) {
    control::v1::ReleaseResponse::Untold& told = *response.add_untold();
    told.set_container(untold.container);
    told.set_why(untold.why);
  }
  return {};
}

}  // namespace topolet::daemon
