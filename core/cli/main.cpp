#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/exit_status.hpp"
#include "core/cli/command.hpp"
#include "core/cli/output.hpp"
#include "core/cli/simulate.hpp"
#include "core/config/option_table.hpp"
#include "core/plugin_checker/command.hpp"

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
  options.add_options()("help", "Show this help.");
  return options;
}

/// What any command takes.
po::options_description options_of_all() {
  po::options_description all;
  for (const Command& command : commands()) {
    const po::options_description own = options_of(command);
    for (const auto& option : own.options()) {
      if (all.find_nothrow(option->long_name(), false) == nullptr) all.add(option);
    }
  }
  return all;
}

int print_help() {
  fmt::print(
      "Shows what topoletd does on this node and explains its decisions.\n\nUsage: topolet COMMAND "
      "[OPTION]...\n\nCommands\n");
  for (const Command& command : commands()) {
    fmt::print("  {:24} {}\n", command.words + (command.arguments.empty() ? "" : " " + command.arguments),
               command.help.substr(0, command.help.find_first_of(":.")) + ".");
  }
  fmt::print(
      "\n`topolet COMMAND --help` explains one command and its options. Exit status: 0 success, 1 failure or no "
      "result, 2 usage error.\n");
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

int report(const Status& done) {
  if (done) return kExitSuccess;
  if (!done.error().message.empty()) {
    fmt::print(stderr, "{}: {}\n", kProgram, done.error().message);
  }
  return done.error().code == Code::kInvalidArgument ? kExitUsage : kExitFailure;
}

int run(const Command& command, const std::vector<std::string>& arguments, std::size_t word_count) {
  Invocation invocation;
  try {
    invocation.values = parse(arguments, options_of(command), false);
  } catch (const po::error& error) {
    return usage_error(fmt::format("{} {}", kProgram, command.words),
                       fmt::format("{}; see `topolet {} --help`", error.what(), command.words));
  }
  if (invocation.has("help")) return print_help(command);
  const std::vector<std::string> words = words_of(invocation.values);
  invocation.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(word_count), words.end());
  if (invocation.arguments.size() < command.min_arguments || invocation.arguments.size() > command.max_arguments) {
    return usage_error(kProgram, fmt::format("usage: topolet {}{}{}; example: {}", command.words,
                                             command.arguments.empty() ? "" : " ", command.arguments, command.example));
  }
  return report(command.run(invocation));
}

int run(const std::vector<std::string>& arguments) {
  // They have options of their own.
  if (!arguments.empty() && arguments[0] == "simulate")
    return simulate_command({arguments.begin() + 1, arguments.end()});
  if (arguments.size() >= 2 && arguments[0] == "plugin" && arguments[1] == "check") {
    return plugin_checker::check_command("topolet plugin check", {arguments.begin() + 2, arguments.end()});
  }
  // First with the options of all commands, to tell the words from the values of options.
  const po::variables_map values = parse(arguments, options_of_all(), true);
  const std::vector<std::string> words = words_of(values);
  if (words.empty()) {
    if (values.count("help") != 0) return print_help();
    return usage_error(kProgram, "no command given; `topolet --help` lists them");
  }
  std::size_t count = 0;
  const Command* command = find_command(words, count);
  return command != nullptr ? run(*command, arguments, count) : unknown_command(words);
}

/// What stdio still has to write.
int flush_output(int exit_status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  const Error why = output_error(errno);
  if (!why.message.empty()) fmt::print(stderr, "{}: {}\n", kProgram, why.message);
  return kExitFailure;
}

/// Never throws.
int run_reporting(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const po::error& error) {
    return usage_error(kProgram, std::string(error.what()) + "; see `topolet --help`");
  } catch (const std::system_error& error) {
    // As fmt throws it when stdout cannot be written to.
    return report(error.code() == std::errc::broken_pipe ? output_error(EPIPE) : Error{Code::kUnknown, error.what()});
  } catch (const std::exception& error) {
    return report(Error{Code::kUnknown, error.what()});
  }
}

}  // namespace
}  // namespace topolet::cli

int main(int argc, char** argv) {
  // A reader that has closed its end of a pipe is then an error of the write, whatever this program was started with.
  std::signal(SIGPIPE, SIG_IGN);
  return topolet::cli::flush_output(topolet::cli::run_reporting({argv + 1, argv + argc}));
}
