// `topolet simulate` with a record: its decisions are made again.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "core/config/config_text.hpp"

namespace topolet::cli {

/// The command line's options besides the record.
struct RecordOptions {
  std::string workload;            ///< the file's name
  std::string config;              ///< in place of the recorded configurations; empty: those count
  std::vector<std::string> flags;  ///< topoletd's
  std::string plugin_dir;          ///< if there is no directory where the configuration says
  std::vector<std::string> given;  ///< the names of the options that are given
  bool json = false;
};

/// The exit status: failure if a decision is another than it was. Ends the process where a plugin does not return.
int replay_record(std::istream& record, const RecordOptions& options);

}  // namespace topolet::cli
