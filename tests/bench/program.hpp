// The main function of the programs that measure.
#pragma once

#include <fmt/format.h>

#include <boost/program_options/errors.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tests/bench/roles.hpp"

namespace topolet::bench {

/// Plays the role that the arguments name, or else measures. Returns the exit status: 0 if all went well, 1 if
/// something went wrong, 2 if `measure` threw a program_options error, for wrong use.
inline int run_program(const char* name, int argc, char** argv, void (*measure)(const std::vector<std::string>&)) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (!run_role(arguments)) measure(arguments);
    return 0;
  } catch (const boost::program_options::error& error) {
    fmt::print(stderr, "{}: {}; see --help\n", name, error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace topolet::bench
