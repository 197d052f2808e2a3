// The end of a process that has run foreign code.
#pragma once

namespace topolet {

/// Ends the process with this status. Output that was printed must have been flushed. No exit handler and no destructor
/// of a static object runs, neither this program's nor a library's: threads that a library has left behind may still
/// use what they would destroy.
[[noreturn]] void end_process(int status);

}  // namespace topolet
