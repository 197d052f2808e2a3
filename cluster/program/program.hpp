// Command line, signals and failures of the programs beside topoletd.
//
// The folder cluster/program. Namespace topolet::program.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/api/api_server.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"

namespace topolet::program {

struct About {
  std::string name;     ///< "topolet-agent"
  std::string purpose;  ///< one sentence, for --help
};

/// Returns the exit status if the program ends because of its command line: it was wrong, which is reported on stderr,
/// or it asked for --help or --version. Nothing if `known` has its values now.
std::optional<int> read_command_line(const About& about, const std::vector<std::string>& arguments,
                                     const boost::program_options::options_description& known);
/// Says what is wrong; the exit status.
int usage_error(const About& about, const std::string& what);
/// Says why it cannot start; the exit status.
int start_failed(Log& log, const Error& error);

/// SIGTERM and SIGINT, blocked before any thread begins, so that all of them leave these to the main one.
sigset_t block_ending_signals();
void wait_for_end(const sigset_t& signals, Log& log);

/// `where`: "in-cluster", or the path of a kubeconfig.
Result<api::ApiServer> find_api_server(const std::string& where);

/// The whole of main(): calls `run` with the arguments, and tells what it throws.
int run_main(const About& about, int argc, char** argv, const std::function<int(const std::vector<std::string>&)>& run);

}  // namespace topolet::program
