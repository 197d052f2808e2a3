#include "core/daemon/describe_status.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "core/base/text.hpp"
#include "core/daemon/overlaps.hpp"

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
  return fmt::format("ready on unix://{}", facts.listen);
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

}  // namespace topolet::daemon
