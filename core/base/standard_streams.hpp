// The handling of the standard streams in every program.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace topolet {

/// Replaces each closed stream by one that refuses to be read or written, so that no file which is opened later takes
/// its number and its text. For the beginning of main().
void fill_closed_standard_streams();

/// Returns the stream of this program's own output: stdout, or another one of what stdout was until
/// keep_output_apart().
std::FILE* own_output();

/// Makes standard output another name of standard error, for what foreign code in this process prints, from now on and
/// for ever: it cannot be taken for this program's own output, which goes on in own_output(). For the main thread,
/// before foreign code is loaded. Returns false, and changes nothing, if there is no descriptor left.
bool keep_output_apart();

/// "cannot write the output: No space left on device", from errno.
std::string output_failure(int error_number);

/// Returns kExitFailure if fmt threw because own_output() could not be written to, and reports it on stderr unless its
/// reader has gone. Returns nothing for another exception.
std::optional<int> report_lost_output(std::string_view program, const std::exception& thrown);

/// Writes what stdio still has to write to own_output(). Returns `exit_status`, or kExitFailure if something of the
/// output is lost, which a line on stderr says unless it is because the reader has gone.
int finish_output(std::string_view program, int exit_status);

}  // namespace topolet
