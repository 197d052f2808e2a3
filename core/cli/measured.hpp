// What topoletd measures, as commands show it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {

/// Asks topoletd for what it measures; where it only begins to as it is asked, waits for its first values, a few
/// seconds at most. FAILED_PRECONDITION: it measures nothing (daemon.load = off).
Result<control::v1::LoadResponse> ask_load(DaemonClient& daemon);

/// Returns what people should know of the values, a line each: that they are old, or of too short a time.
std::string load_notes(const control::v1::LoadState& state);

/// The columns of one container's load, and their cells; of one that is not measured, `measured` is null. For people,
/// in CPUs, percent and MiB.
std::vector<std::string> load_columns(bool is_for_people);
Row load_cells(const control::v1::ContainerLoad* measured, bool is_for_people);

/// The containers by the runtime's id.
std::map<std::string, const control::v1::ContainerLoad*> by_id(const control::v1::LoadResponse& load);

/// "1.50": thousandths of a CPU as CPUs.
std::string cpus_text(std::int64_t milli);

/// "CPUs used", and so on, of NUMA nodes.
std::vector<std::string> node_load_columns(bool is_for_people);
Row node_load_cells(const control::v1::NodeLoad* measured, bool is_for_people);

}  // namespace topolet::cli
