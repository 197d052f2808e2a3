// topolet-plugin-check: tries a plugin's file without a daemon, and without the rest of topolet.
#include <csignal>

#include "core/base/standard_streams.hpp"
#include "core/plugin_checker/command.hpp"

int main(int argc, char** argv) {
  constexpr const char* kProgram = "topolet-plugin-check";
  topolet::fill_closed_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write
  return topolet::finish_output(kProgram, topolet::plugin_checker::check_command(kProgram, {argv + 1, argv + argc}));
}
