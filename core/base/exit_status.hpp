// The exit statuses of all programs.
#pragma once

namespace topolet {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;   ///< it failed, or what was named is not there
inline constexpr int kExitNoAnswer = 3;  ///< of a check: topoletd does not answer, so that nobody can tell
inline constexpr int kExitUsage = 2;     ///< the command line or the configuration is wrong

}  // namespace topolet
