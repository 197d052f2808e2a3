// A machine with many CPUs for topoletd, so that what it decides does not depend on the machine that measures.
#pragma once

#include <string>

namespace topolet::bench {

/// Gives this process and the programs it executes a machine that is described in hwloc's words, "pack:2 numa:1 core:4
/// pu:2": hwloc is told by its environment, and a file mounted over the kernel's list of online CPUs says that all of
/// them are. The mount is in a namespace of this process. Throws if the kernel permits no such namespace.
void enter_machine(const std::string& synthetic);

/// How many CPUs a machine has that is described so.
int number_of_cpus(const std::string& synthetic);

/// True if enter_machine() works here; tries it in another process.
bool can_enter_machine(const std::string& synthetic);

}  // namespace topolet::bench
