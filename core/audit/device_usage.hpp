// Which containers name which devices of the machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/audit/machine_record.hpp"
#include "core/audit/record.hpp"
#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

struct DeviceUsage {
  MachineRecord::Device device;
  std::vector<Record> containers;  ///< those that held something and whose request names it: others may use it, too
};

/// The devices that the machine had at that time; none if they are not recorded.
Result<std::vector<DeviceUsage>> devices_at(const store::Database& database, std::int64_t at_ms);

}  // namespace topolet::audit
