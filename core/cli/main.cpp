#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/suggestion.hpp"
#include "core/cli/command.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kProgram = "topolet";
/// The name that words have among the options.
constexpr const char* kWord = "word";

/// The command's own, and --help.
po::options_description options_of(const Command& command) {
  po::options_description options("Options", 100, 50);
  if (command.declare != nullptr) command.declare(options);
  options.add_options()("help,h", "Show this help.");
  return options;
}

/// Returns the options of all commands together.
po::options_description options_of_all() {
  po::options_description all;
  all.add_options()("version", "");  // of no command
  for (const Command& command : commands()) {
    const po::options_description own = options_of(command);
    for (const auto& option : own.options()) {
      if (all.find_nothrow(option->long_name(), false) == nullptr) all.add(option);
    }
  }
  return all;
}

void print_commands(const std::string& beginning) {
  fmt::print("Commands\n");
  for (const Command& command : commands()) {
    if (command.words.rfind(beginning, 0) != 0) continue;
    fmt::print("  {:24} {}\n", command.words + (command.arguments.empty() ? "" : " " + command.arguments),
               command.help.substr(0, command.help.find_first_of(":.")) + ".");
  }
}

constexpr const char* kHelpEnd =
    "\n`topolet COMMAND --help` explains one command and its options. Exit status: 0 success, also where there is "
    "nothing "
    "to list; 1 failure, or what was named is not there; 2 usage error; 3 of `topolet status --check`, where topoletd "
    "does not answer.\n";

int print_version() {
  fmt::print("topolet {}\n", TOPOLET_VERSION);
  return kExitSuccess;
}

int print_help() {
  fmt::print(
      "Shows what topoletd does on this node and explains its decisions.\n\nUsage: topolet COMMAND "
      "[OPTION]...\n\n");
  print_commands("");
  po::options_description options("Options", 100, 50);
  options.add_options()("help,h", "Show this help, or with a command, its own; the same as `topolet help [COMMAND]`.")(
      "version", "Print the version.");
  std::ostringstream text;
  text << options;
  fmt::print("\n{}{}", text.str(), kHelpEnd);
  return kExitSuccess;
}

/// Prints the help of the commands that begin with the same word, such as "plugin".
int print_group_help(const std::string& group) {
  fmt::print("The commands of `topolet {0}`.\n\nUsage: topolet {0} COMMAND [OPTION]...\n\n", group);
  print_commands(group + ' ');
  fmt::print("{}", kHelpEnd);
  return kExitSuccess;
}

int print_help(const Command& command) {
  if (command.run_by_itself != nullptr) return command.run_by_itself({"--help"});
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

/// The second words of the commands that begin with this one.
std::vector<std::string> second_words(const std::string& group) {
  std::vector<std::string> seconds;
  for (const Command& command : commands()) {
    if (command.words.rfind(group + ' ', 0) == 0) seconds.push_back(command.words.substr(group.size() + 1));
  }
  return seconds;
}

int unknown_command(const std::vector<std::string>& words) {
  const std::vector<std::string> seconds = second_words(words[0]);
  if (!seconds.empty()) {
    const std::string help = fmt::format("`topolet {} --help` explains them", words[0]);
    if (words.size() == 1) {
      return usage_error(kProgram,
                         fmt::format("'{}' needs a second word: {}; {}", words[0], fmt::join(seconds, ", "), help));
    }
    const std::string near = suggestion(words[1], seconds, words[0] + ' ');
    return usage_error(kProgram,
                       with_hint(fmt::format("there is no command '{}'{}", first_words(words, 2), near), help));
  }
  std::vector<std::string> known = {"help", "--version"};
  for (const Command& command : commands()) known.push_back(command.words.substr(0, command.words.find(' ')));
  const std::string near = suggestion(words[0], known);
  return usage_error(
      kProgram, with_hint(fmt::format("there is no command '{}'{}", words[0], near), "`topolet --help` lists them"));
}

/// `words`: what stands behind "help".
int help_with(const std::vector<std::string>& words) {
  if (words.empty()) return print_help();
  std::size_t count = 0;
  if (const Command* command = find_command(words, count); command != nullptr && count == words.size()) {
    return print_help(*command);
  }
  if (words.size() == 1 && words[0] == "help") return print_help();
  if (const Command* command = find_command(words, count); command != nullptr) {
    return usage_error(kProgram, with_hint(fmt::format("there is no command '{}'", fmt::join(words, " ")),
                                           fmt::format("`topolet {0} --help` explains {0}", command->words)));
  }
  if (words.size() == 1 && !second_words(words[0]).empty()) return print_group_help(words[0]);
  return unknown_command(words);
}

/// A word with white space before any '=' cannot be the name of an option: SQL may begin with "-- a comment".
std::vector<po::option> parse_text(std::vector<std::string>& arguments) {
  const std::string& first = arguments.front();
  if (first.rfind("--", 0) != 0 || first.substr(0, first.find('=')).find_first_of(" \t\n\r") == std::string::npos) {
    return {};
  }
  po::option word;
  word.value = {first};
  word.original_tokens = {first};
  arguments.erase(arguments.begin());
  return {word};
}

/// Words and options may stand in any order. Boost must not guess what an abbreviation means.
po::variables_map parse(const std::vector<std::string>& arguments, const po::options_description& options,
                        bool allow_unknown) {
  po::options_description all;
  all.add(options).add_options()(kWord, po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add(kWord, -1);
  po::command_line_parser parser(arguments);
  parser.options(all).positional(positions).extra_style_parser(parse_text);
  parser.style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
  if (allow_unknown) parser.allow_unregistered();
  po::variables_map values;
  po::store(parser.run(), values);
  po::notify(values);
  return values;
}

std::vector<std::string> words_of(const po::variables_map& values) {
  return values.count(kWord) != 0 ? values[kWord].as<std::vector<std::string>>() : std::vector<std::string>();
}

/// Reports the outcome. `is_check`: the exit status tells an answer from none.
int report(const Status& done, bool is_check) {
  if (done) return kExitSuccess;
  if (!done.error().message.empty()) print_error_line(fmt::format("{}: {}", kProgram, done.error().message));
  if (done.error().code == Code::kInvalidArgument) return kExitUsage;
  return is_check && done.error().code == Code::kUnavailable ? kExitNoAnswer : kExitFailure;
}

std::string usage_of(const Command& command) {
  return fmt::format("usage: topolet {}{}{}; example: {}; `topolet {} --help` explains it", command.words,
                     command.arguments.empty() ? "" : " ", command.arguments, command.example, command.words);
}

int run(const Command& command, const std::vector<std::string>& arguments, std::size_t word_count) {
  const std::string program = fmt::format("{} {}", kProgram, command.words);
  Invocation invocation;
  const po::options_description options = options_of(command);
  try {
    invocation.values = parse(arguments, options, false);
  } catch (const po::error& error) {
    return usage_error(program, with_hint(option_error(error, options),
                                          fmt::format("`topolet {} --help` lists the options", command.words)));
  }
  if (invocation.has("help")) return print_help(command);
  const std::vector<std::string> words = words_of(invocation.values);
  invocation.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(word_count), words.end());
  if (invocation.arguments.size() < command.min_arguments || invocation.arguments.size() > command.max_arguments) {
    return usage_error(kProgram, usage_of(command));
  }
  return report(command.run(invocation), invocation.has("check"));
}

/// The command that parses the rest of the command line itself; null if the command line does not begin with one.
const Command* find_independent(const std::vector<std::string>& arguments, std::size_t& count) {
  const Command* command = find_command(arguments, count);
  return command != nullptr && command->run_by_itself != nullptr ? command : nullptr;
}

/// Only options are given, of which one may be meant to be something else.
int no_command(const std::vector<std::string>& arguments, const po::options_description& options) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    // Not the value of an option.
    if (bare.empty() || bare == name) continue;
    if (options.find_nothrow(name.rfind("--", 0) == 0 ? bare : '-' + bare, false) != nullptr) continue;
    return usage_error(
        kProgram, with_hint(fmt::format("unrecognised option '{}'{}", name, suggestion(name, {"--help", "--version"})),
                            "`topolet --help` lists the commands"));
  }
  return usage_error(kProgram, "no command given; `topolet --help` lists them");
}

int run(const std::vector<std::string>& arguments) {
  std::size_t count = 0;
  if (const Command* command = find_independent(arguments, count); command != nullptr) {
    return command->run_by_itself({arguments.begin() + static_cast<std::ptrdiff_t>(count), arguments.end()});
  }
  // First with the options of all commands, to tell the words from the values of options.
  const po::options_description all = options_of_all();
  po::variables_map values;
  try {
    values = parse(arguments, all, true);
  } catch (const po::error&) {
    // The command says it with its own name.
    if (const Command* command = find_command(arguments, count); command != nullptr)
      return run(*command, arguments, count);
    throw;
  }
  const std::vector<std::string> words = words_of(values);
  const bool asks_for_help = values.count("help") != 0;
  if (words.empty()) {
    if (asks_for_help) return print_help();
    if (values.count("version") != 0) return print_version();
    return no_command(arguments, all);
  }
  if (words[0] == "help") return help_with({words.begin() + 1, words.end()});
  const Command* command = find_command(words, count);
  if (command == nullptr) return asks_for_help ? help_with(words) : unknown_command(words);
  if (command->run_by_itself == nullptr) return run(*command, arguments, count);
  return asks_for_help ? print_help(*command) : usage_error(kProgram, usage_of(*command));
}

/// Never throws.
int run_reporting(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const po::error& error) {
    return usage_error(kProgram, std::string(error.what()) + "; `topolet --help` lists the commands");
  } catch (const std::exception& error) {
    if (const auto lost = report_lost_output(kProgram, error)) return *lost;
    return report(Error{Code::kUnknown, error.what()}, false);
  }
}

}  // namespace
}  // namespace topolet::cli

int main(int argc, char** argv) {
  topolet::fill_closed_standard_streams();
  // A reader that has closed its end of a pipe is then an error of the write, whatever this program was started with.
  std::signal(SIGPIPE, SIG_IGN);
  return topolet::finish_output("topolet", topolet::cli::run_reporting({argv + 1, argv + argc}));
}
