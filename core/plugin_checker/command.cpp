#include "core/plugin_checker/command.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/standard_streams.hpp"
#include "core/plugin/call/kept_page.hpp"
#include "core/plugin_checker/check_plugin.hpp"

namespace topolet::plugin_checker {
namespace {

namespace po = boost::program_options;

constexpr const char* kHelp =
    "Tests a plugin file on made-up machines and requests, without a daemon.\n\n"
    "Usage: {0} FILE.so [OPTION]...\n"
    "Example: {0} build/spread.so --seed 7\n\n";
constexpr const char* kHelpEnd =
    "\nExit status: 0 all cases passed; 1 some case failed or could not be run; 2 usage error.\n";

int list() {
  std::string text;
  for (const auto& each : list_cases()) text += fmt::format("{:<26} {}\n", each.name, each.what);
  fmt::print(own_output(), "{}", text);
  return kExitSuccess;
}

int run(const std::string& command, const std::vector<std::string>& arguments) {
  CheckOptions options;
  options.command = command;
  std::string file;
  std::uint32_t time_limit_s = 30;
  po::options_description described("Options", 100, 50);
  described.add_options()("list", "List the cases.")("case", po::value(&options.only_case)->value_name("CASE"),
                                                     "Run only this case.")(
      "seed", po::value(&options.seed)->value_name("NUMBER")->default_value(1), "The seed of the random requests.")(
      "requests", po::value(&options.requests)->value_name("NUMBER")->default_value(500),
      "How many random requests to make.")(
      "time-limit", po::value(&time_limit_s)->value_name("SECONDS")->default_value(30),
      "How many seconds each case may take.")("json", po::bool_switch(&options.json), "Write one JSON document.")(
      "file", po::value(&file)->value_name("FILE.so"), "The plugin; the same as FILE.so alone.")("help,h",
                                                                                                 "Show this help.");
  po::positional_options_description positional;
  positional.add("file", 1);
  po::variables_map given;
  po::command_line_parser parser(arguments);
  parser.options(described).positional(positional);
  parser.style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
  po::store(parser.run(), given);
  po::notify(given);
  if (given.count("help") > 0) {
    std::cout << fmt::format(fmt::runtime(kHelp), command) << described << kHelpEnd;
    return kExitSuccess;
  }
  if (given.count("list") > 0) return list();
  if (file.empty()) throw po::error("name the plugin's file: " + command + " FILE.so");
  if (time_limit_s == 0) throw po::error("--time-limit must be at least 1 second");
  plugin::introduce_host_as("topolet plugin check");
  options.file = file;
  options.time_limit = std::chrono::seconds(time_limit_s);
  return check_plugin(options, std::cout);
}

}  // namespace

int check_command(const std::string& command, const std::vector<std::string>& arguments) {
  try {
    return run(command, arguments);
  } catch (const std::exception& exception) {
    const std::string program = command.substr(0, command.find(' '));
    if (const std::optional<int> lost = report_lost_output(program, exception)) return *lost;
    print_error_line(fmt::format("{}: {}; `{} --help` explains the options", command, exception.what(), command));
    return kExitUsage;
  }
}

}  // namespace topolet::plugin_checker
