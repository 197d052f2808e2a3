// The handling of the standard streams in every program.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace topolet {

/// Replaces each closed stream by one that refuses to be read or written, so that no file which is opened later takes
/// its number and its text. For the beginning of main().
void fill_closed_standard_streams();

/// "cannot write the output: No space left on device", from errno.
std::string output_failure(int error_number);

/// Returns kExitFailure if fmt threw because stdout could not be written to, and reports it on stderr unless its reader
/// has gone. Returns nothing for another exception.
std::optional<int> report_lost_output(std::string_view program, const std::exception& thrown);

/// Writes what stdio still has to write to stdout. Returns `exit_status`, or kExitFailure if something of the output is
/// lost, which a line on stderr says unless it is because the reader has gone.
int finish_output(std::string_view program, int exit_status);

}  // namespace topolet
