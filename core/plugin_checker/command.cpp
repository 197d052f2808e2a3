#include "core/plugin_checker/command.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <iostream>

#include "core/plugin_checker/check_plugin.hpp"

namespace topolet::plugin_checker {
namespace {

namespace po = boost::program_options;

int list() {
  for (const auto& each : list_cases()) std::cout << fmt::format("{:<26} {}\n", each.name, each.what);
  return 0;
}

int run(const std::string& command, const std::vector<std::string>& arguments) {
  CheckOptions options;
  options.command = command;
  std::string file;
  std::uint32_t time_limit_s = 30;
  po::options_description described(command + " FILE.so, with");
  described.add_options()                                                                                  //
      ("help", "Show this help.")                                                                          //
      ("list", "List the cases.")                                                                          //
      ("case", po::value(&options.only_case), "Run only this case.")                                       //
      ("seed", po::value(&options.seed)->default_value(1), "The seed of the random requests.")             //
      ("requests", po::value(&options.requests)->default_value(500), "How many random requests to make.")  //
      ("time-limit", po::value(&time_limit_s)->default_value(30), "How many seconds each case may take.")  //
      ("json", po::bool_switch(&options.json), "Write one JSON document.")                                 //
      ("file", po::value(&file), "The plugin; the same as FILE.so alone.");
  po::positional_options_description positional;
  positional.add("file", 1);
  po::variables_map given;
  po::store(po::command_line_parser(arguments).options(described).positional(positional).run(), given);
  po::notify(given);
  if (given.count("help") > 0) {
    std::cout << described;
    return 0;
  }
  if (given.count("list") > 0) return list();
  if (file.empty()) throw po::error("name the plugin's file: " + command + " FILE.so");
  if (time_limit_s == 0) throw po::error("--time-limit must be at least 1 second");
  options.file = file;
  options.time_limit = std::chrono::seconds(time_limit_s);
  return check_plugin(options, std::cout);
}

}  // namespace

int check_command(const std::string& command, const std::vector<std::string>& arguments) {
  try {
    return run(command, arguments);
  } catch (const std::exception& exception) {
    std::cerr << command << ": " << exception.what() << "; see --help\n";
    return 2;
  }
}

}  // namespace topolet::plugin_checker
