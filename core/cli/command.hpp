// The commands of topolet: what each is called, takes and does.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::cli {

/// What the command line asks for.
struct Request {
  std::string socket;
  std::string state_dir;
  bool json = false;
  std::string pod = {};
  int limit = 0;
  std::vector<std::string> arguments = {};  ///< behind the command's words
};

struct Command {
  std::string words;      ///< "plugin list"
  std::string arguments;  ///< as the help shows them: "NAME [DIR]"
  std::string help;
  std::string example;
  std::size_t least = 0;  ///< arguments
  std::size_t most = 0;
  bool filters = false;  ///< takes --pod and --limit
  /// Writes its answer to stdout. INVALID_ARGUMENT is wrong use; any other error, a no.
  Status (*run)(const Request& request) = nullptr;
};

const std::vector<Command>& commands();

// Each in the file that is named after it.
Status show_status(const Request& request);
Status reload(const Request& request);
Status list_plugins(const Request& request);
Status reset_plugin(const Request& request);
Status new_plugin(const Request& request);
Status check_plugin_file(const Request& request);
Status simulate_workload(const Request& request);
Status run_query(const Request& request);
Status show_placements(const Request& request);
Status explain(const Request& request);
Status show_audit(const Request& request);
Status check_config(const Request& request);

}  // namespace topolet::cli
