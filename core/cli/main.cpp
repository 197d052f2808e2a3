#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/exit_status.hpp"
#include "core/cli/command.hpp"
#include "core/cli/simulate.hpp"
#include "core/config/option_table.hpp"
#include "core/plugin_checker/command.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kProgram = "topolet";

po::options_description general_options() {
  po::options_description options("Options", 100, 50);
  options.add_options()("socket",
                        po::value<std::string>()->value_name("PATH")->default_value("/run/topolet/control.sock"),
                        "topoletd's control socket.")(
      "state-dir", po::value<std::string>()->value_name("DIR")->default_value("/var/lib/topolet"),
      "topoletd's state directory, with the database.")("json", "Print JSON, for programs.")("help", "Show this help.");
  return options;
}

po::options_description options_of(const Command& command) {
  po::options_description options = general_options();
  if (command.filters) {
    options.add_options()("pod", po::value<std::string>()->value_name("NAME"), "Only this pod.")(
        "limit", po::value<int>()->value_name("NUMBER")->default_value(50),
        "How many entries to show, the newest ones.");
  }
  return options;
}

int print_help() {
  fmt::print(
      "Shows what topoletd does on this node and explains its decisions.\n\nUsage: topolet COMMAND "
      "[OPTION]...\n\nCommands\n");
  for (const Command& command : commands()) {
    fmt::print("  {:24} {}\n", command.words + (command.arguments.empty() ? "" : " " + command.arguments),
               command.help.substr(0, command.help.find_first_of(":.")) + ".");
  }
  std::ostringstream options;
  options << general_options();
  fmt::print(
      "\n{}\n`topolet COMMAND --help` explains one command. Exit status: 0 success, 1 failure or no result, 2 usage "
      "error.\n",
      options.str());
  return kExitSuccess;
}

int print_help(const Command& command) {
  std::ostringstream options;
  options << options_of(command);
  fmt::print("{}\n\nUsage: topolet {}{}{} [OPTION]...\nExample: {}\n\n{}", command.help, command.words,
             command.arguments.empty() ? "" : " ", command.arguments, command.example, options.str());
  return kExitSuccess;
}

std::string first_words(const std::vector<std::string>& arguments, std::size_t count) {
  std::string words;
  for (std::size_t i = 0; i < count; ++i) words += (i > 0 ? " " : "") + arguments[i];
  return words;
}

/// The command that the words name; null if there is none. `count`: how many words it has.
const Command* find_command(const std::vector<std::string>& words, std::size_t& count) {
  for (count = std::min<std::size_t>(2, words.size()); count > 0; --count) {
    for (const Command& command : commands()) {
      if (command.words == first_words(words, count)) return &command;
    }
  }
  return nullptr;
}

int unknown_command(const std::vector<std::string>& words) {
  std::vector<std::string> known;
  std::vector<std::string> below;  // "plugin" alone, or with a wrong word behind it
  for (const Command& command : commands()) {
    known.push_back(command.words);
    if (command.words.rfind(words[0] + ' ', 0) == 0) below.push_back(command.words);
  }
  if (!below.empty()) {
    if (words.size() == 1) {
      return usage_error(kProgram, fmt::format("'{}' needs a second word: {}", words[0], fmt::join(below, ", ")));
    }
    known = below;
  }
  const std::string wanted = below.empty() ? words[0] : first_words(words, 2);
  return usage_error(kProgram, fmt::format("there is no command '{}'; {}", wanted, config::suggestion(wanted, known)));
}

/// Words and options may stand in any order. Boost must not guess what an abbreviation means.
po::variables_map parse(const std::vector<std::string>& arguments, const po::options_description& options) {
  po::options_description all;
  all.add(options).add_options()("word", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("word", -1);
  po::variables_map values;
  po::store(po::command_line_parser(arguments)
                .options(all)
                .positional(positions)
                .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                .run(),
            values);
  po::notify(values);
  return values;
}

std::vector<std::string> words_of(const po::variables_map& values) {
  return values.count("word") != 0 ? values["word"].as<std::vector<std::string>>() : std::vector<std::string>();
}

int run(const Command& command, const po::variables_map& values, std::size_t word_count) {
  if (values.count("help") != 0) return print_help(command);
  Invocation invocation{.socket = values["socket"].as<std::string>(),
                        .state_dir = values["state-dir"].as<std::string>(),
                        .json = values.count("json") != 0};
  const std::vector<std::string> words = words_of(values);
  invocation.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(word_count), words.end());
  if (values.count("pod") != 0) invocation.pod = values["pod"].as<std::string>();
  if (values.count("limit") != 0) invocation.limit = values["limit"].as<int>();
  if (command.filters && invocation.limit < 1) return usage_error(kProgram, "--limit must be 1 or more");
  if (invocation.arguments.size() < command.min_arguments || invocation.arguments.size() > command.max_arguments) {
    return usage_error(kProgram, fmt::format("usage: topolet {}{}{}; example: {}", command.words,
                                             command.arguments.empty() ? "" : " ", command.arguments, command.example));
  }
  const Status done = command.run(invocation);
  if (done) return kExitSuccess;
  if (!done.error().message.empty()) fmt::print(stderr, "topolet: {}\n", done.error().message);
  return done.error().code == Code::kInvalidArgument ? kExitUsage : kExitFailure;
}

int run(const std::vector<std::string>& arguments) {
  // They have options of their own.
  if (!arguments.empty() && arguments[0] == "simulate")
    return simulate_command({arguments.begin() + 1, arguments.end()});
  if (arguments.size() >= 2 && arguments[0] == "plugin" && arguments[1] == "check") {
    return plugin_checker::check_command("topolet plugin check", {arguments.begin() + 2, arguments.end()});
  }
  // First with all options there are, to find the command; then with its own.
  po::options_description any = general_options();
  any.add_options()("pod", po::value<std::string>())("limit", po::value<int>());
  const po::variables_map values = parse(arguments, any);
  const std::vector<std::string> words = words_of(values);
  if (words.empty()) {
    if (values.count("help") != 0) return print_help();
    return usage_error(kProgram, "no command given; `topolet --help` lists them");
  }
  std::size_t count = 0;
  const Command* command = find_command(words, count);
  if (command == nullptr) return unknown_command(words);
  return run(*command, parse(arguments, options_of(*command)), count);
}

}  // namespace
}  // namespace topolet::cli

int main(int argc, char** argv) {
  try {
    return topolet::cli::run({argv + 1, argv + argc});
  } catch (const boost::program_options::error& error) {
    return topolet::cli::usage_error(topolet::cli::kProgram, std::string(error.what()) + "; see `topolet --help`");
  } catch (const std::exception& error) {
    fmt::print(stderr, "topolet: {}\n", error.what());
    return topolet::kExitFailure;
  }
}
