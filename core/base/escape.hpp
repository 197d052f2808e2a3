// Escapes texts that others wrote, such as the name of a pod, on their way to a terminal or a log.
//
// Each outlet escapes what leaves it, so that nobody else has to: the sink of the daemon's log, the tables and lines of
// the command, and print_error_line(). Texts inside of the programs and in the database stay as they came.
#pragma once

#include <string>
#include <string_view>

namespace topolet {

/// Returns one line in which nothing moves the cursor, changes colours, hides or reorders text, and from which the
/// original can be read back: a backslash is \\, a new line \n, a carriage return \r, a tab \t. Any other control
/// character of ASCII, and each byte that is not UTF-8, is \x and its two hexadecimal digits. Any other character that
/// is invisible or acts on its neighbours (C1 controls, bidirectional marks, line separators, zero-width characters) is
/// \u{202e}, its code point in hexadecimal digits. All else stays as it is.
std::string escaped(std::string_view text);

/// The same JSON, with \u202e in place of each such character. `json` is JSON in UTF-8 already.
std::string escaped_json(std::string json);

/// Writes escaped(text) as one line to standard error; nobody is told if that fails.
void print_error_line(std::string_view text);

}  // namespace topolet
