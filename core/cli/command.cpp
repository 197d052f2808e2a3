#include "core/cli/command.hpp"

namespace topolet::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kAll = {
      {"status", "", "How topoletd is: sockets, runtime, database, containers and CPUs.", "topolet status", 0, 0, false,
       &show_status},
      {"ps", "", "Which container runs where now, and why.", "topolet ps", 0, 0, false, &show_placements},
      {"explain", "CONTAINER",
       "Why a container is where it is: the candidates, what each plugin said of them, what won. CONTAINER is a name, "
       "POD/NAME, NAMESPACE/POD/NAME or the beginning of an id.",
       "topolet explain web/main", 1, 1, false, &explain},
      {"audit", "", "What happened, oldest first.", "topolet audit --pod web --limit 20", 0, 0, true, &show_audit},
      {"query", "SQL", "Asks the state database, which is opened read-only.",
       "topolet query \"SELECT pod, reason FROM denials\"", 1, 1, false, &run_query},
      {"plugin list", "", "The enabled plugins: version, capabilities, state, calls, lost votes, options.",
       "topolet plugin list", 0, 0, false, &list_plugins},
      {"plugin reset", "NAME", "Ends a plugin's quarantine, so that it is asked again.", "topolet plugin reset numa", 1,
       1, false, &reset_plugin},
      {"plugin new", "NAME [DIR]", "Writes a plugin to begin with into DIR (NAME if not given): it builds as it is.",
       "topolet plugin new spread", 1, 2, false, &new_plugin},
      {"simulate", "--topology MACHINE --workload FILE",
       "Runs a workload through the daemon's decisions, on any machine and without a runtime.",
       "topolet simulate --topology \"pack:2 numa:1 core:4 pu:2\" --workload pods.jsonl", 0, 0, false,
       &simulate_workload},
      {"plugin check", "FILE.so", "Tries a plugin's file on made-up machines and requests, without a daemon.",
       "topolet plugin check build/spread.so --seed 7", 1, 1, false, &check_plugin_file},
      {"reload", "", "Lets topoletd read its configuration again, as SIGHUP does, and says what came of it.",
       "topolet reload", 0, 0, false, &reload},
      {"config check", "[FILE]", "Says all that is wrong with a configuration file.",
       "topolet config check /etc/topolet/topolet.conf", 0, 1, false, &check_config},
  };
  return kAll;
}

}  // namespace topolet::cli
