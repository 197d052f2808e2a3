#include "core/cli/command.hpp"

#include <fmt/format.h>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/suggestion.hpp"
#include "core/cli/simulate.hpp"

namespace topolet::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kAll = {
      {"status", "",
       "Shows the state of topoletd and what is ill: sockets, runtime, database, containers, CPUs, and by name the "
       "plugins and containers that something is the matter with, also those denied in the last ten minutes. What "
       "needs "
       "somebody is told first; a notice is what topolet mends itself or somebody has set so.",
       "topolet status --check", 0, 0, &declare_status, &show_status},
      {"ps", "",
       "Lists the placed containers: where each runs now, and the reason when it was placed. `squeezed` marks those "
       "that do not have the CPUs they should, because CPUs are offline or must not be used any more: `topolet "
       "explain` tells what they should have. Where it says 'no CPU left', the kernel runs the container elsewhere "
       "than on CPUS.",
       "topolet ps", 0, 0, &declare_ps, &show_placements},
      {"cpu", "NUMBER", "Tells who is on a CPU, or was at a time: who runs on it, and who keeps it idle.",
       "topolet cpu 5 --at 'yesterday 14:03'", 1, 1, &declare_cpu, &show_cpu},
      {"at", "TIME", "Lists what was held at a time, with the CPUs of that moment.", "topolet at 2026-01-31T12:00:00Z",
       1, 1, &declare_at, &show_held},
      {"nodes", "",
       "Lists the NUMA nodes: what each has, what is in use, and what an exclusive container could get. Then lists "
       "their devices, and the containers whose requests name them.",
       "topolet nodes", 0, 0, &declare_nodes, &show_nodes},
      {"map", "",
       "Draws the machine: the cores of each NUMA node, and for each CPU who has it exclusively, or whether it is "
       "shared, reserved, isolated or kept idle.",
       "topolet map --watch", 0, 0, &declare_map, &show_map},
      {"top", "",
       "Shows how much of its CPUs each NUMA node uses, and what each container uses and waits for, again every two "
       "seconds until stopped. topoletd measures for as long as somebody looks, unless daemon.load says otherwise.",
       "topolet top --once --sort memory", 0, 0, &declare_top, &show_top},
      {"moves", "", "Lists who ran somewhere else than before, and because of whom.", "topolet moves --since 1h", 0, 0,
       &declare_moves, &show_moves},
      {"denials", "", "Lists the containers that were denied, or counts them by reason, pod or plugin.",
       "topolet denials --since 1d --by reason", 0, 0, &declare_denials, &show_denials},
      {"explain", "CONTAINER",
       "Explains why a container is where it is: the candidates, what each plugin said about them, and which one won. "
       "CONTAINER is a name, POD/NAME, NAMESPACE/POD/NAME or the beginning of a container id; POD or NAMESPACE/POD is "
       "enough if the pod has one container.",
       "topolet explain web/main", 0, 1, &declare_explain, &explain},
      {"audit", "", "Lists what happened, oldest first.", "topolet audit --pod web --limit 20", 0, 0, &declare_audit,
       &show_audit},
      {"query", "SQL",
       "Runs an SQL query on the state database, which is opened read-only: one statement that only reads. Instead of "
       "SQL, '-' reads it from standard input, and --file from a file.",
       "topolet query \"SELECT pod, reason FROM denials\"", 0, 1, &declare_query, &run_query},
      {"backup", "FILE", "Writes a copy of the state database into a new file, also while topoletd runs.",
       "topolet backup /var/backups/topolet.db", 1, 1, &declare_backup, &back_up},
      {"prune", "", "Deletes what had ended long ago from the state database, also while topoletd runs.",
       "topolet prune --older-than 7d --dry-run", 0, 0, &declare_prune, &prune},
      {"plugin list", "", "Lists the enabled plugins: version, capabilities, state, calls, lost votes, options.",
       "topolet plugin list", 0, 0, &declare_plugin_list, &list_plugins},
      {"plugin reset", "NAME", "Ends a plugin's quarantine, so that topoletd asks it again.",
       "topolet plugin reset numa", 1, 1, &declare_plugin_reset, &reset_plugin},
      {"plugin new", "NAME [DIR]",
       "Creates a new plugin project in DIR (default NAME): it builds as it is, has a test, and a workload to try it "
       "with in `topolet simulate`.",
       "topolet plugin new spread", 1, 2, &declare_new_plugin, &new_plugin},
      {"simulate", "--topology MACHINE --workload FILE",
       "Runs a workload through the daemon's own engine and plugins, for any machine and without a runtime.",
       "topolet simulate --topology \"pack:2 numa:1 core:4 pu:2\" --workload pods.jsonl", 0, 0, nullptr, nullptr,
       &simulate_command},
      {"plugin check", "FILE.so", "Tests a plugin file on made-up machines and requests, without a daemon.",
       "topolet plugin check build/spread.so --seed 7", 1, 1, nullptr, nullptr, &check_plugin_file},
      {"reload", "", "Makes topoletd read its configuration again, as SIGHUP does, and reports the result.",
       "topolet reload", 0, 0, &declare_reload, &reload},
      {"restart", "",
       "Replaces topoletd by a new process of the version that is installed, which reads the whole configuration. No "
       "call fails: the new process takes over the sockets, and the one before ends with the calls it has.",
       "topolet restart", 0, 0, &declare_restart, &restart},
      {"heal", "",
       "Moves containers to better places now: those on more NUMA nodes or caches than needed, or farther from their "
       "devices. placement.heal and the annotation topolet.io/move say which ones may be moved.",
       "topolet heal --dry-run", 0, 0, &declare_heal, &heal},
      {"release", "--all | --cpusets",
       "Takes back what topoletd has done to containers, before it is uninstalled: limits of memory, and CPUs that "
       "BestEffort containers were narrowed to. With --cpusets every container may run on all CPUs of the pool, and "
       "those created from then on are not placed. Ends when topoletd starts again.",
       "topolet release --cpusets", 0, 0, &declare_release, &release},
      {"capacity show", "",
       "Lists what is told of the capacity of NUMA nodes: how much of their CPUs can be had, until when, and who says "
       "so.",
       "topolet capacity show", 0, 0, &declare_capacity_show, &show_capacity},
      {"capacity set", "--node NODE --milli NUMBER --for DURATION",
       "Tells topoletd how much of a NUMA node's CPUs can be had for a while, as the host of a virtual machine knows "
       "it. No container moves: who chooses between machines reads it, and of a node below 90 % of nominal for 60 s so "
       "many exclusive CPUs fewer are offered as are missing. The newest word counts, until it expires.",
       "topolet capacity set --node 1 --milli 12000 --for 10m", 0, 0, &declare_capacity_set, &set_capacity},
      {"capacity clear", "--node NODE", "Makes the nominal capacity of a NUMA node count again.",
       "topolet capacity clear --node 1", 0, 0, &declare_capacity_clear, &clear_capacity},
      {"config show", "",
       "Shows what topoletd's configuration says, and which file and line says it: the file and its parts, "
       "FILE.d/*.conf, "
       "of which the last one that has a key counts. What topoletd's command line sets is not known here.",
       "topolet config show", 0, 0, &declare_config_show, &show_config},
      {"config check", "[FILE]", "Reports every mistake in a configuration file and its parts, FILE.d/*.conf.",
       "topolet config check /etc/topolet/topolet.conf", 0, 1, &declare_config_check, &check_config},
      {"config kubelet", "",
       "Prints what to set in the kubelet's configuration, so that it admits no pod that topolet must deny for lack of "
       "CPUs or memory.",
       "topolet config kubelet > /etc/kubernetes/kubelet.conf.d/90-topolet.conf", 0, 0, &declare_config_kubelet,
       &print_kubelet_config},
  };
  return kAll;
}

int usage_error(std::string_view program, std::string_view why) {
  print_error_line(fmt::format("{}: {}", program, why));
  return kExitUsage;
}

std::string with_hint(const std::string& why, const std::string& hint) {
  return why + (why.ends_with('?') ? " " : "; ") + hint;
}

std::string option_error(const boost::program_options::error& error, const Options& options) {
  const auto* unknown = dynamic_cast<const boost::program_options::unknown_option*>(&error);
  if (unknown == nullptr) return error.what();
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back(option->long_name());
  std::string given = unknown->get_option_name();
  given.erase(0, given.find_first_not_of('-'));
  return error.what() + suggestion(given, names, "--");
}

Error listed_error(Code code, std::string_view why, const std::vector<std::string>& details) {
  print_error_line(fmt::format("topolet: {}", why));
  for (const std::string& detail : details) print_error_line("  " + detail);
  return {code, {}};
}

}  // namespace topolet::cli
