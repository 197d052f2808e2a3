// Makes the decisions of a record again, each with what it had read, and says which is another now.
#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/config/config_text.hpp"

namespace topolet::replay {

/// Returns true if a workload file begins as a record does, of whatever version. Leaves the stream where it was.
bool is_record(std::istream& in);

/// A decision that is not as it was.
struct Difference {
  std::size_t line = 0;
  std::string container;  ///< NAMESPACE/POD/CONTAINER
  std::string policy;     ///< the first whose answers differ; empty: none does, or it is not the policies'
  std::string what;       ///< for people
};

struct ReplayResult {
  std::size_t decisions = 0;
  std::size_t different = 0;   ///< of these
  std::size_t lost_votes = 0;  ///< lost again, as they were lost then
  std::size_t ticks = 0;
  std::size_t events = 0;
  std::size_t operations = 0;  ///< told along with the decisions
  std::size_t begins = 0;      ///< of the daemon
  std::size_t torn_lines = 0;  ///< that a daemon was killed over
  std::optional<Difference> first;
  bool has_abandoned_calls = false;  ///< a plugin did not return: such a process must end by _exit
};

/// With another configuration other plugins are asked, or the same with other options and weights. What [placement]
/// says has gone into what was recorded, and stays as it was.
struct ReplayOptions {
  std::optional<std::vector<config::ConfigEntry>> configuration = {};  ///< in place of all that are recorded
  std::vector<config::ConfigEntry> overrides = {};                     ///< in place of what they say of the same keys
  std::string plugin_dir = {};  ///< where plugins are, if there is no directory where the configuration says
};

/// Errors name the line: INVALID_ARGUMENT for one that is none of a record's, FAILED_PRECONDITION for a record that
/// this version does not read, or a configuration that is not accepted here.
Result<ReplayResult> replay(std::istream& record, const ReplayOptions& options);

}  // namespace topolet::replay
