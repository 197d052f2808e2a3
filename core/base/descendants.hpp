// The processes that a process started, and those started by these, found in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace topolet {

struct Descendant {
  pid_t process = 0;
  pid_t parent = 0;
  std::string program;     ///< the first 15 bytes of its file's name
  bool has_ended = false;  ///< and nobody has waited for it
  std::uint32_t threads = 0;
};

/// Returns all processes below `ancestor`; empty if there is no /proc of this process's own pid namespace.
std::vector<Descendant> descendants_of(pid_t ancestor);

}  // namespace topolet
