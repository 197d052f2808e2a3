// The options of `topolet simulate`, and its help.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace topolet::cli {

struct SimulateOptions {
  std::string topology;
  std::string distances;
  std::string isolated;
  std::string config;
  std::vector<std::string> plugins;  ///< files
  std::string state_dir;
  std::string watch;
  std::string front;
  std::string workload;
  bool json = false;
  bool explain = false;
};

/// Describes the options, which go into `options`.
boost::program_options::options_description simulate_options(SimulateOptions& options);

/// Prints the help, with the operations that a workload may have. Returns the exit status.
int print_simulate_help();

}  // namespace topolet::cli
