// topolet-plugin-check: tries a plugin's file without a daemon, and without the rest of topolet.
#include "core/plugin_checker/command.hpp"

int main(int argc, char** argv) {
  return topolet::plugin_checker::check_command("topolet-plugin-check", {argv + 1, argv + argc});
}
