#include "core/audit/device_usage.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/audit/history.hpp"
#include "core/audit/rows.hpp"

namespace topolet::audit {
namespace {

struct NamedDevice {
  std::string name;
  std::string address;  ///< empty if it is not known to be a PCI device
};

Result<std::vector<NamedDevice>> devices_of(const store::Database& database, std::int64_t decision) {
  std::vector<NamedDevice> devices;
  Status read = for_each_row(
      database,
      "SELECT json_extract(value, '$.name'), coalesce(json_extract(value, '$.address'), '') "
      "FROM decided JOIN json_each(nullif(devices, '')) WHERE decision = ?1",
      [&](const store::Statement& row) -> Status {
        devices.push_back({row.text(0), row.text(1)});
        return {};
      },
      decision);
  if (!read) return read.error();
  return devices;
}

bool is_it(const MachineRecord::Device& device, const NamedDevice& named) {
  if (!named.address.empty()) return named.address == device.address;
  return named.name == device.name || named.name.substr(named.name.find_last_of("/=") + 1) == device.name;
}

}  // namespace

Result<std::vector<DeviceUsage>> devices_at(const store::Database& database, std::int64_t at_ms) {
  const auto machine = machine_at(database, at_ms);
  if (!machine) return machine.error();
  std::vector<DeviceUsage> usages;
  if (!*machine || (*machine)->devices.empty()) return usages;
  for (const MachineRecord::Device& device : (*machine)->devices) usages.push_back({device, {}});
  const auto state = History(database).at(at_ms);
  if (!state) return state.error();
  for (const auto& [decision, record] : state->held()) {
    const auto named = devices_of(database, decision);
    if (!named) return named.error();
    for (DeviceUsage& usage : usages) {
      const bool names_it = std::any_of(named->begin(), named->end(),
                                        [&](const NamedDevice& device) { return is_it(usage.device, device); });
      if (names_it) usage.containers.push_back(record);
    }
  }
  return usages;
}

}  // namespace topolet::audit
