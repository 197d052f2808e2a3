#include "core/daemon/describe_status.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "core/base/text.hpp"
#include "core/daemon/foreign_handlers.hpp"
#include "core/daemon/overlaps.hpp"
#include "core/engine/state/reported_capacity.hpp"

namespace topolet::daemon {
namespace {

/// "12 containers placed (9 shared, 3 exclusive)".
std::string describe_containers(const engine::EngineSummary& engine) {
  std::size_t total = 0;
  std::vector<std::string> modes;
  for (const auto& [mode, count] : engine.containers) {
    if (count == 0) continue;
    total += count;
    modes.push_back(fmt::format("{} {}", count, mode));
  }
  const std::string placed = counted(total, "container") + " placed";
  return modes.empty() ? placed : fmt::format("{} ({})", placed, fmt::join(modes, ", "));
}

std::string describe_service(const StatusFacts& facts, bool reconciled) {
  if (!facts.runtime_connected) return fmt::format("waiting for the runtime on unix://{}", facts.runtime);
  if (!reconciled) return fmt::format("comparing with the runtime on unix://{}", facts.runtime);
  return facts.listen.empty() ? "ready for the runtime's NRI" : fmt::format("ready on unix://{}", facts.listen);
}

void describe_capacities(const engine::EngineSummary& engine, control::v1::StatusResponse& response) {
  for (const auto& [told, nominal_milli] : engine.capacities) {
    control::v1::Capacity& capacity = *response.add_capacities();
    capacity.set_node(told.node);
    capacity.set_milli(told.milli);
    capacity.set_nominal_milli(nominal_milli);
    capacity.set_until_ms(told.until.count());
    capacity.set_source(told.source);
    capacity.set_below_since_ms(told.below_since.count());
    capacity.set_missing_cpus(engine::missing_cpus(told, nominal_milli));
  }
}

}  // namespace

std::string describe_status(const StatusFacts& facts, const engine::EngineSummary& engine) {
  std::string status = fmt::format("{}; {}", describe_service(facts, engine.reconciled), describe_containers(engine));
  if (const std::uint32_t overlapping = count_overlapping(engine.overlaps); overlapping > 0)
    status += fmt::format("; {} on CPUs that others have exclusively", counted(overlapping, "container"));
  if (!engine.overruled.empty())
    status +=
        fmt::format("; {} overruled: something else sets the CPUs", counted(engine.overruled.size(), "container"));
  if (!engine.stuck.empty()) status += fmt::format("; {} cannot be moved", counted(engine.stuck.size(), "container"));
  if (engine.squeezed > 0)
    status += fmt::format("; {} squeezed, as CPUs are offline or must not be used", engine.squeezed);
  if (engine.store_degraded)
    status += fmt::format("; goes on without the state database: {}", engine.store_degraded_because);
  if (!facts.store_damage.empty()) status += fmt::format("; the state database is damaged: {}", facts.store_damage);
  if (!facts.reload_error.empty()) status += fmt::format("; the configuration was not changed: {}", facts.reload_error);
  return status;
}

void tell_nri(const NriFacts& facts, control::v1::NriGuard& told) {
  told.set_refuses(facts.refuses);
  told.set_is_registered(facts.state.runtime.has_value());
  told.set_why_not(facts.state.why_not);
  told.set_is_front(facts.is_front);
  for (const std::string& plugin : facts.plugins) told.add_plugins(plugin);
  if (!facts.state.runtime) return;
  const nri::RuntimeFacts& runtime = *facts.state.runtime;
  told.set_is_asked(nri::asks_validators(runtime));
  told.set_runtime(runtime.name + " " + runtime.version);
  told.set_nri_version(runtime.nri_version);
}

void describe_status(const DaemonFacts& facts, const engine::EngineSummary& engine,
                     control::v1::StatusResponse& response) {
  response.set_version(facts.version);
  response.set_process(facts.process);
  response.set_uptime_s(facts.uptime.count());
  response.set_listen(facts.listen);
  response.set_runtime(facts.runtime);
  response.set_runtime_connected(facts.runtime_connected);
  response.set_state_dir(facts.state_dir);
  response.set_store_degraded(engine.store_degraded);
  response.set_store_degraded_because(engine.store_degraded_because);
  response.set_store_reopened_because(engine.store_reopened_because);
  response.set_released(std::string(engine::to_string(engine.released)));
  response.set_store_damage(facts.store_damage);
  response.set_reconciled(engine.reconciled);
  if (facts.nri) tell_nri(*facts.nri, *response.mutable_nri_guard());
  tell_illnesses(facts.illnesses, *response.mutable_illnesses());
  for (const auto& [mode, count] : engine.containers) (*response.mutable_containers())[mode] = count;
  response.set_squeezed(engine.squeezed);
  response.set_left_to_kernel(engine.left_to_kernel);
  tell_overlaps(engine.overlaps, response);
  tell_overruled(engine.overruled, response);
  tell_stuck(engine.stuck, response);
  tell_foreign(engine, response);
  response.set_generation(engine.generation);
  response.set_allowed_cpus(engine.allowed.to_string());
  response.set_pool_cpus(engine.pool.to_string());
  response.set_reserved_cpus(engine.reserved.to_string());
  response.set_exclusive_cpus(engine.exclusive.to_string());
  response.set_withheld_cpus(engine.withheld.to_string());
  describe_capacities(engine, response);
}

}  // namespace topolet::daemon
