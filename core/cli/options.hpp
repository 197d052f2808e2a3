// Options that several commands have, and what they lead to.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/result.hpp"
#include "core/cli/command.hpp"
#include "core/cli/row_writer.hpp"
#include "core/config/options.hpp"

namespace topolet::cli {

/// --config, --socket and --state-dir. Every command that asks topoletd or its database takes all three, so that a
/// script can give each of them the same.
void declare_location(Options& options);
/// The same and --database.
void declare_database_file(Options& options);
/// The same and --timeout: of commands that read the database.
void declare_database(Options& options);
/// --format and --json: of commands that print rows.
void declare_format(Options& options);
/// --json alone: of commands that print something else.
void declare_json(Options& options);

/// topoletd's control socket: --socket, or else daemon.control of its configuration. The configuration is read only if
/// the option is missing. INVALID_ARGUMENT names the file and its mistakes.
Result<std::string> control_socket(const Invocation& invocation);
/// The state database: --database, state.db in --state-dir, or in daemon.state-dir of topoletd's configuration.
Result<std::filesystem::path> database_file(const Invocation& invocation);

/// topoletd's configuration: --config or the default file.
Result<config::Options> configuration(const Invocation& invocation);

/// The moment that an option or argument names, in milliseconds since 1970; INVALID_ARGUMENT says how to write one.
Result<std::int64_t> moment(const std::string& text);

/// --since and --until. `since`: the default.
void declare_time_range(Options& options, const char* since);
struct TimeRange {
  std::int64_t since_ms = 0;
  std::int64_t until_ms = 0;
};
Result<TimeRange> time_range(const Invocation& invocation);

/// Returns the value of --timeout; 0: no limit.
Result<std::chrono::seconds> timeout_of(const Invocation& invocation);
Result<Format> format_of(const Invocation& invocation);
/// A whole number that has a default and must not be smaller than `minimum`.
Result<int> number_of(const Invocation& invocation, const char* option, int minimum);

}  // namespace topolet::cli
