// The commands of topolet: what each is called, takes and does.
//
// The room core/cli, namespace topolet::cli: the command `topolet`. main.cpp finds the command in commands(); each
// command has a file named after it. It may include every room of the core except core/daemon, which it reaches through
// the control socket only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::cli {

/// What the command line asks for.
struct Invocation {
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
  std::size_t min_arguments = 0;
  std::size_t max_arguments = 0;
  bool filters = false;  ///< takes --pod and --limit
  /// Writes its answer to stdout. INVALID_ARGUMENT is a usage error; any other error, a failure or no
  /// result.
  Status (*run)(const Invocation& invocation) = nullptr;
};

const std::vector<Command>& commands();

/// Says on stderr what is wrong with the command line. Returns what the program ends with.
int usage_error(std::string_view program, std::string_view why);

// Each in the file that is named after it.
Status show_status(const Invocation& invocation);
Status reload(const Invocation& invocation);
Status list_plugins(const Invocation& invocation);
Status reset_plugin(const Invocation& invocation);
Status new_plugin(const Invocation& invocation);
Status check_plugin_file(const Invocation& invocation);
Status simulate_workload(const Invocation& invocation);
Status run_query(const Invocation& invocation);
Status show_placements(const Invocation& invocation);
Status explain(const Invocation& invocation);
Status show_audit(const Invocation& invocation);
Status check_config(const Invocation& invocation);

}  // namespace topolet::cli
