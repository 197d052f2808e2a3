#include "core/cli/options.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/program_options.hpp>
#include <utility>
#include <vector>

#include "core/audit/time_text.hpp"
#include "core/base/clock.hpp"
#include "core/base/escape.hpp"
#include "core/config/options.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

constexpr std::array<std::pair<const char*, Format>, 4> kFormats = {
    {{"table", Format::kTable}, {"json", Format::kJson}, {"ndjson", Format::kNdjson}, {"csv", Format::kCsv}}};

/// Returns true if the mistake may hide where topoletd is, as for a file that cannot be read.
bool is_about_location(const config::ConfigMistake& mistake) {
  const auto names = [&mistake](const char* key) { return mistake.message.find(key) != std::string::npos; };
  return mistake.line == 0 || names("daemon.control") || names("daemon.state-dir");
}

enum class Wanted { kAll, kLocation };

/// Reads the configuration. Plugins are not loaded, so mistakes in their options are not reported. `instead`: the
/// options with which the file is not needed. If only the location is wanted, other mistakes are warnings: topoletd may
/// run with an older version of the files.
Result<config::Options> read_configuration(const Invocation& invocation, const char* instead, Wanted wanted) {
  std::vector<std::string> arguments;
  if (invocation.has("config")) arguments = {"--config", invocation.text("config")};
  const config::ValidatedConfig config = config::validate_config(config::read_raw(arguments), {});
  if (config.mistakes.empty()) return config.options;
  std::vector<std::string> mistakes;
  bool matters = wanted == Wanted::kAll;
  for (const config::ConfigMistake& mistake : config.mistakes) {
    mistakes.push_back(mistake.to_string());
    matters = matters || is_about_location(mistake);
  }
  if (!matters) {
    print_error_line("warning: the configuration has mistakes, so that topoletd would refuse it:");
    for (const std::string& mistake : mistakes) print_error_line("  " + mistake);
    return config.options;
  }
  return listed_error(Code::kInvalidArgument,
                      fmt::format("topoletd's configuration has mistakes; correct them{}:", instead), mistakes);
}

}  // namespace

void declare_location(Options& options) {
  options.add_options()("config", po::value<std::string>()->value_name("FILE"),
                        fmt::format("topoletd's configuration, which says where its socket and its database are; {} "
                                    "unless given.",
                                    config::kDefaultConfigFile)
                            .c_str())("socket", po::value<std::string>()->value_name("PATH"),
                                      "topoletd's control socket, instead of the one in the configuration.")(
      "state-dir", po::value<std::string>()->value_name("DIR"),
      "topoletd's state directory, instead of the one in the configuration.");
}

void declare_database_file(Options& options) {
  declare_location(options);
  options.add_options()("database", po::value<std::string>()->value_name("FILE"),
                        "The state database itself, such as a copy that `topolet backup` made.");
}

void declare_database(Options& options) {
  declare_database_file(options);
  options.add_options()("timeout", po::value<int>()->value_name("SECONDS")->default_value(60),
                        "How long the database may be read, until the last row is written; 0: any time.");
}

void declare_format(Options& options) {
  options.add_options()("format", po::value<std::string>()->value_name("FORMAT")->default_value("table"),
                        "table, json (an array), ndjson (an object per line) or csv.");
  declare_json(options);
}

void declare_json(Options& options) { options.add_options()("json", "Print JSON, for programs."); }

Result<std::string> control_socket(const Invocation& invocation) {
  if (invocation.has("socket")) return invocation.text("socket");
  const auto options =
      read_configuration(invocation, ", name another file with --config, or give --socket", Wanted::kLocation);
  if (!options) return options.error();
  return options->daemon.control;
}

Result<std::filesystem::path> database_file(const Invocation& invocation) {
  constexpr const char* kFile = "state.db";
  if (invocation.has("database")) return std::filesystem::path(invocation.text("database"));
  if (invocation.has("state-dir")) return std::filesystem::path(invocation.text("state-dir")) / kFile;
  const auto options =
      read_configuration(invocation, ", name another file with --config, or give --state-dir", Wanted::kLocation);
  if (!options) return options.error();
  return options->daemon.state_dir / kFile;
}

Result<config::Options> configuration(const Invocation& invocation) {
  return read_configuration(invocation, ", or name another file with --config", Wanted::kAll);
}

Result<std::int64_t> moment(const std::string& text) { return audit::parse_time(text, Clock().wall().count()); }

void declare_time_range(Options& options, const char* since) {
  options.add_options()("since", po::value<std::string>()->value_name("TIME")->default_value(since),
                        "From when on: a time, or how long ago.")(
      "until", po::value<std::string>()->value_name("TIME")->default_value("now"), "Until when.");
}

Result<TimeRange> time_range(const Invocation& invocation) {
  const auto since = moment(invocation.text("since"));
  if (!since) return since.error();
  const auto until = moment(invocation.text("until"));
  if (!until) return until.error();
  if (*since > *until) {
    return Error{Code::kInvalidArgument, fmt::format("--since ({}) is later than --until ({})",
                                                     invocation.text("since"), invocation.text("until"))};
  }
  return TimeRange{*since, *until};
}

Result<std::chrono::seconds> timeout_of(const Invocation& invocation) {
  // A command that goes on until it is stopped reads for a moment at a time.
  if ((invocation.has("follow") || invocation.has("watch")) && invocation.values["timeout"].defaulted())
    return std::chrono::seconds(0);
  const auto seconds = number_of(invocation, "timeout", 0);
  if (!seconds) return seconds.error();
  return std::chrono::seconds(*seconds);
}

Result<Format> format_of(const Invocation& invocation) {
  const std::string wanted =
      invocation.has("json") && invocation.values["format"].defaulted() ? "json" : invocation.text("format");
  for (const auto& [name, format] : kFormats) {
    if (wanted == name && (!invocation.has("json") || format == Format::kJson)) return format;
  }
  if (invocation.has("json")) return Error{Code::kInvalidArgument, "--json and --format contradict each other"};
  return Error{Code::kInvalidArgument, fmt::format("--format must be table, json, ndjson or csv, not '{}'", wanted)};
}

Result<int> number_of(const Invocation& invocation, const char* option, int minimum) {
  const int number = invocation.value<int>(option);
  if (number >= minimum) return number;
  return Error{Code::kInvalidArgument, fmt::format("--{} must be {} or more", option, minimum)};
}

}  // namespace topolet::cli
