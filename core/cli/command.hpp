// The commands of topolet: what each is called, takes and does.
//
// The room core/cli, namespace topolet::cli: the command `topolet`. main.cpp finds the command in commands(); each
// command has a file named after it, which declares its options and reads them. options.hpp has the options that
// several commands share. It may include every room of the core except core/daemon, which it reaches through the
// control socket only.
#pragma once

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::cli {

using Options = boost::program_options::options_description;

/// The parsed command line.
struct Invocation {
  boost::program_options::variables_map values = {};  ///< of the options that the command declares
  std::vector<std::string> arguments = {};            ///< behind the command's words

  /// Returns true if the option was given or has a default. A switch is given or not.
  bool has(const char* option) const { return values.count(option) != 0; }
  template <class T>
  const T& value(const char* option) const {
    return values[option].as<T>();
  }
  /// The value of an option that is a text; empty if there is none.
  std::string text(const char* option) const { return has(option) ? value<std::string>(option) : std::string(); }
};

struct Command {
  std::string words;      ///< "plugin list"
  std::string arguments;  ///< as the help shows them: "NAME [DIR]"
  std::string help;
  std::string example;
  std::size_t min_arguments = 0;
  std::size_t max_arguments = 0;
  /// Adds the command's options; null if it has none, or parses them itself. An option that two commands have takes a
  /// value in both or in neither, as the command is looked for before its options are known.
  void (*declare)(Options& options) = nullptr;
  /// Writes its answer to stdout. INVALID_ARGUMENT is a usage error; any other error, a failure.
  Status (*run)(const Invocation& invocation) = nullptr;
  /// In place of `run`, for a command that parses what stands behind its words itself, --help too. Returns what the
  /// program ends with.
  int (*run_by_itself)(const std::vector<std::string>& arguments) = nullptr;
};

const std::vector<Command>& commands();

/// Says on stderr what is wrong with the command line. Returns what the program ends with.
int usage_error(std::string_view program, std::string_view why);

/// "what is wrong; hint", or behind a question "did you mean X? hint".
std::string with_hint(const std::string& why, const std::string& hint);

/// Returns Boost.Program_options' message about a command line, with the option that may have been meant.
std::string option_error(const boost::program_options::error& error, const Options& options);

/// Says on stderr what is wrong, in a line of its own for each of `details`. The error it returns has no message, as
/// all is said.
Error listed_error(Code code, std::string_view why, const std::vector<std::string>& details);

// Each in the file that is named after it.
void declare_status(Options& options);
Status show_status(const Invocation& invocation);
void declare_reload(Options& options);
Status reload(const Invocation& invocation);
void declare_restart(Options& options);
Status restart(const Invocation& invocation);
void declare_plugin_list(Options& options);
Status list_plugins(const Invocation& invocation);
void declare_plugin_reset(Options& options);
Status reset_plugin(const Invocation& invocation);
void declare_new_plugin(Options& options);
Status new_plugin(const Invocation& invocation);
int check_plugin_file(const std::vector<std::string>& arguments);
void declare_query(Options& options);
Status run_query(const Invocation& invocation);
void declare_ps(Options& options);
Status show_placements(const Invocation& invocation);
void declare_at(Options& options);
Status show_held(const Invocation& invocation);
void declare_cpu(Options& options);
Status show_cpu(const Invocation& invocation);
void declare_nodes(Options& options);
Status show_nodes(const Invocation& invocation);
void declare_map(Options& options);
Status show_map(const Invocation& invocation);
void declare_top(Options& options);
Status show_top(const Invocation& invocation);
void declare_moves(Options& options);
Status show_moves(const Invocation& invocation);
void declare_denials(Options& options);
Status show_denials(const Invocation& invocation);
void declare_explain(Options& options);
Status explain(const Invocation& invocation);
void declare_audit(Options& options);
Status show_audit(const Invocation& invocation);
void declare_backup(Options& options);
Status back_up(const Invocation& invocation);
void declare_prune(Options& options);
Status prune(const Invocation& invocation);
void declare_heal(Options& options);
Status heal(const Invocation& invocation);
void declare_release(Options& options);
Status release(const Invocation& invocation);
void declare_capacity_show(Options& options);
Status show_capacity(const Invocation& invocation);
void declare_capacity_set(Options& options);
Status set_capacity(const Invocation& invocation);
void declare_capacity_clear(Options& options);
Status clear_capacity(const Invocation& invocation);
void declare_config_check(Options& options);
Status check_config(const Invocation& invocation);
void declare_config_show(Options& options);
Status show_config(const Invocation& invocation);
void declare_config_kubelet(Options& options);
Status print_kubelet_config(const Invocation& invocation);

}  // namespace topolet::cli
