#include "core/config/option_table.hpp"

#include <utility>

#include "core/base/index_set.hpp"

namespace topolet::config {
namespace {

constexpr std::int64_t kDayMs = 24LL * 60 * 60 * 1000;

OptionSpec with_range(OptionSpec spec, std::int64_t minimum, std::int64_t maximum) {
  spec.minimum = minimum;
  spec.maximum = maximum;
  return spec;
}

std::vector<OptionSpec> daemon_options() {
  const auto option = [](std::string key, OptionType type, std::string value, std::string help,
                         std::vector<std::string> allowed = {}) {
    return OptionSpec{.section = "daemon",
                      .key = std::move(key),
                      .type = type,
                      .defaults = {std::move(value)},
                      .allowed = std::move(allowed),
                      .help = std::move(help)};
  };
  const auto number = [option](std::string key, std::string value, std::string help, std::int64_t minimum,
                               std::int64_t maximum) {
    return with_range(option(std::move(key), OptionType::kInt, std::move(value), std::move(help)), minimum, maximum);
  };
  return {
      option("listen", OptionType::kSocket, "unix:///run/topolet/topolet.sock",
             "The socket that the kubelet connects to; set the kubelet's --container-runtime-endpoint to it."),
      option("front", OptionType::kString, "cri",
             "How containers come to topolet: the kubelet connects to listen (cri), or the runtime asks topoletd over "
             "nri.socket, and nothing of the kubelet changes (nri). With nri, topoletd opens no socket at listen.",
             {"cri", "nri"}),
      option("control", OptionType::kSocket, "unix:///run/topolet/control.sock",
             "The socket that the command topolet connects to; only its owner may connect."),
      option(
          "watch", OptionType::kSocket, "none",
          "The socket that shows what topoletd decides, and changes nothing; topolet-agent connects to it. none: there "
          "is no such socket.",
          {"none"}),
      option("watch-group", OptionType::kString, "",
             "The group, by name or number, whose members may connect to watch; empty means topoletd's own."),
      option("runtime", OptionType::kSocket, "unix:///run/containerd/containerd.sock",
             "The container runtime's CRI socket."),
      option("image", OptionType::kSocket, "", "The CRI socket of the image service; empty means the same as runtime."),
      option("node-name", OptionType::kNodeName, "",
             "The name of this node in Kubernetes, which the annotation topolet.io/zone must name to count here; empty "
             "means the host's name in lower case."),
      option(
          "cpu-manager-state", OptionType::kPath, "/var/lib/kubelet/cpu_manager_state",
          "Where the kubelet keeps which CPUs its CPU manager (policy static) has given to containers: those that run "
          "when topoletd first starts keep them exclusively. The file need not exist."),
      option("state-dir", OptionType::kPath, "/var/lib/topolet",
             "The directory of the state database; created with mode 0700 if it does not exist."),
      option("plugin-dir", OptionType::kPath, TOPOLET_PLUGIN_DIR, "The directory that plugins are loaded from."),
      option("log-level", OptionType::kString, "info", "How much to log.",
             {"trace", "debug", "info", "warn", "error", "off"}),
      option("durability", OptionType::kString, "normal",
             "What a decision survives once it has been acted on: a crash of the daemon (normal), or a power failure "
             "too (full).",
             {"normal", "full"}),
      with_range(
          option("store-patience", OptionType::kDuration, {"50ms"},
                 "How long to wait until a decision is written to the state database before acting on it anyway."),
          1, 60000),
      with_range(option("drain-timeout", OptionType::kDuration, {"10m"},
                        "How long a topoletd whose place another one has taken goes on with the calls that are under "
                        "way on its connections, such as the pull of an image."),
                 0, kDayMs),
      option("keep", OptionType::kDuration, "30d",
             "How long the state database keeps a decision after its end, as in 30d; 0: for ever."),
      number("keep-mib", "1024",
             "How large the state database may become, with its log, in MiB: then the oldest decisions that have ended "
             "are deleted before their time. 0: any size.",
             0, 1 << 20),
      option(
          "load", OptionType::kString, "auto",
          "When the load of CPUs and containers is measured, once a second: while a plugin reads it or somebody asks "
          "for it, as `topolet top` does (auto); always (on); never (off).",
          {"auto", "on", "off"}),
      option("record", OptionType::kPath, "none",
             "The file in which everything is recorded that decisions are made of, for `topolet simulate --workload`; "
             "it has mode 0600. none: nothing is recorded.",
             {"none"}),
      number("record-mib", "256",
             "How large the record may become, in MiB: then it is renamed to FILE.1, in the place of the one before, "
             "and a new one begins.",
             1, 1 << 20),
      number("max-connections", "1024",
             "How many clients may be connected at once. When one more connects, the process with the most connections "
             "loses its newest one.",
             8, 1 << 20),
      number("max-memory-mib", "512",
             "How much memory topoletd may use, in MiB. Above it, clients that send or call without end or do not read "
             "are disconnected.",
             128, 1 << 20),
      number("max-message-mib", "64", "The largest message that is passed on, in MiB. The kubelet accepts 16.", 16,
             1024),
      number("max-metadata-mib", "16", "The most metadata that one call may carry in each direction, in MiB.", 1, 64),
  };
}

std::vector<OptionSpec> placement_options() {
  const auto option = [](std::string key, OptionType type, std::vector<std::string> defaults, std::string help,
                         std::vector<std::string> allowed = {}) {
    return OptionSpec{.section = "placement",
                      .key = std::move(key),
                      .type = type,
                      .defaults = std::move(defaults),
                      .allowed = std::move(allowed),
                      .help = std::move(help)};
  };
  const auto repeatable = [](OptionSpec spec) {
    spec.repeatable = true;
    return spec;
  };
  const auto with_lone = [](OptionSpec spec, std::vector<std::string> values) {
    spec.lone = std::move(values);
    return spec;
  };
  return {
      option(
          "reserved-cpus", OptionType::kCpus, {"none"},
          "CPUs reserved for the system: never in the shared pool, and never given to a container exclusively. Running "
          "containers are moved there only when all shared CPUs are offline.",
          {"none"}),
      option("allowed-cpus", OptionType::kCpus, {"all"}, "Containers are placed on these CPUs only.", {"all"}),
      with_range(option("min-shared-cpus", OptionType::kInt, {"1"},
                        "How many CPUs always stay in the shared pool, however many are requested exclusively."),
                 0, kMaxOsIndex),
      option("exclusive", OptionType::kString, {"guaranteed-integer"},
             "Which containers get exclusive CPUs: Guaranteed ones that request whole CPUs, and those with the "
             "annotation topolet.io/cpus: exclusive (guaranteed-integer); only the latter (annotated); none (never).",
             {"guaranteed-integer", "annotated", "never"}),
      repeatable(
          option("reserved-namespaces", OptionType::kNamespace, {"kube-system"},
                 "Kubernetes namespaces whose containers run in the shared pool, and always on the reserved CPUs "
                 "too. They get exclusive CPUs only with the annotation topolet.io/cpus: exclusive.")),
      with_lone(
          repeatable(option(
              "exclusive-namespaces", OptionType::kNamespaces, {"none"},
              "Kubernetes namespaces whose pods may take more than they request by annotations: exclusive CPUs for "
              "a request that is no whole number, which is rounded up, idle sibling threads, the classes LSE and LSR, "
              "CPUs that the kernel "
              "isolates. Names, in which * is any text, or none. Those of reserved-namespaces always may. Elsewhere "
              "such annotations are ignored, and the reason of the placement says so.")),
          {"none"}),
      with_lone(repeatable(option("annotations", OptionType::kWord, {"all"},
                                  "The topolet.io annotations that pods may use: their names without that prefix, or "
                                  "all, or none. Others are ignored, and the reason of the placement says so.")),
                {"all", "none"}),
      option("when-full", OptionType::kString, {"deny"},
             "What to do with a container that requests exclusive CPUs when there are not enough: deny it, or let it "
             "share the pool.",
             {"deny", "share"}),
      option("isolated", OptionType::kString, {"annotated"},
             "Who gets exclusive CPUs among those that the kernel isolates (isolcpus): containers with the annotation "
             "topolet.io/isolated (annotated); all, if enough of these are free, and else others (prefer); all, and no "
             "others (always). The annotation comes before it.",
             {"annotated", "prefer", "always"}),
      with_range(option("crash-hold", OptionType::kDuration, {"5m"},
                        "How long the exclusive CPUs of a container that has ended are kept for its next attempt, "
                        "unless another container would be denied, or spread over more NUMA nodes, without them; 0 "
                        "means not at all."),
                 0, kDayMs),
      option(
          "exclusive-quota", OptionType::kString, {"keep"},
          "What becomes of the CFS quota, which enforces a CPU limit, of containers with exclusive CPUs, and of their "
          "pods: it stays as the kubelet sets it (keep), or there is none (drop), so that they are never throttled. "
          "A pod has none while all its containers that have a CPU limit have exclusive CPUs.",
          {"keep", "drop"}),
      option("memory-migrate", OptionType::kBool, {"false"},
             "Whether the memory nodes of a running container may be replaced (true): it gets the new ones at once, "
             "and loses the others when the kernel has moved its memory, one container at a time. With false, memory "
             "nodes are only added."),
      option("heal", OptionType::kString, {"shared"},
             "Which containers may be moved while they run, to a better place or to make room for others: none (off), "
             "those that share CPUs (shared), or also those with exclusive CPUs (all). The annotation topolet.io/move "
             "of a pod, allow or never, comes before it.",
             {"off", "shared", "all"}),
      option("make-room", OptionType::kString, {"all"},
             "How far such containers are moved to make room for one that is created or resized and would otherwise be "
             "denied, on more NUMA nodes or caches, or farther from its devices: not at all (off), within their NUMA "
             "nodes (node), or anywhere (all).",
             {"off", "node", "all"}),
      option("move-memory", OptionType::kSize, {"256Mi"},
             "A container for which this much memory or more is booked is not moved to other NUMA nodes for a better "
             "place, as its memory would stay behind; with memory-migrate = true it is."),
      with_range(option("pending-timeout", OptionType::kDuration, {"4m"},
                        "How long a placement is kept for a CreateContainer whose outcome is unknown."),
                 1000, kDayMs),
      with_range(
          option("start-grace", OptionType::kDuration, {"10s"},
                 "How long a container may still be starting after a StartContainer whose outcome is unknown. For that "
                 "time, or until the container is seen running, the CPUs that it should leave count as in use."),
          100, kDayMs),
      with_range(option("deadline-ms", OptionType::kInt, {"50"},
                        "How much CPU time a plugin may use to answer one call, in milliseconds, before it loses its "
                        "vote; by the clock, it may take twice as long."),
                 1, 60000),
      with_range(
          option("decision-ms", OptionType::kInt, {"200"},
                 "How long plugins may be asked in one decision, in milliseconds. Who has not been asked by then "
                 "loses its vote, through no fault of its own. Unless it is set, it is four times deadline-ms "
                 "where that is more."),
          1, 600000),
      with_range(option("plugin-timeout", OptionType::kDuration, {"10s"},
                        "How long a plugin may take to be loaded, created or destroyed before it is abandoned."),
                 100, kDayMs),
      with_lone(repeatable(option("foreign-handlers", OptionType::kHandlers,
                                  {"kata*", "*firecracker*", "*qemu*", "*clh*", "*-vm", "runhcs*", "urunc*"},
                                  "The runtime handlers whose containers are not placed but pass through untouched, as "
                                  "virtual machines run them: names, in which * is any text, or none. 'default' is the "
                                  "runtime's own default.")),
                {"none"}),
      option("confine-foreign", OptionType::kBool, {"false"},
             "Whether the cgroups of pods whose containers are not placed are kept within the shared pool (true), so "
             "that what runs in them stays off exclusive CPUs; with false they may run on any CPU."),
      repeatable(option("handlers", OptionType::kHandler, {},
                        "Goes with version 1.0: foreign-handlers takes its place. The only runtime handlers whose "
                        "containers are placed; 'default' is the runtime's own default.")),
  };
}

std::vector<OptionSpec> nri_options() {
  const auto option = [](std::string key, OptionType type, std::string value, std::string help,
                         std::vector<std::string> allowed) {
    return OptionSpec{.section = "nri",
                      .key = std::move(key),
                      .type = type,
                      .defaults = {std::move(value)},
                      .allowed = std::move(allowed),
                      .help = std::move(help)};
  };
  return {
      option(
          "socket", OptionType::kSocket, "unix:///var/run/nri/nri.sock",
          "The socket of the runtime's Node Resource Interface (NRI), over which others set CPUs of containers; none: "
          "topoletd does not look for one. It need not exist.",
          {"none"}),
      option(
          "guard", OptionType::kString, "warn",
          "What becomes of a container whose CPUs or memory nodes another NRI plugin sets instead of topolet: it is "
          "created so, and told with the plugin's name (warn), or its creation is refused (deny); off: topoletd does "
          "not ask the runtime, and only finds it in the kernel, without a name. It needs NRI 0.10 (containerd 2.2, "
          "CRI-O 1.34).",
          {"off", "warn", "deny"}),
  };
}

std::vector<OptionSpec> plugin_options(const std::vector<std::string>& plugins) {
  std::vector<OptionSpec> specs = {{.section = "plugins",
                                    .key = "enable",
                                    .type = OptionType::kName,
                                    .defaults = {},
                                    .help = "The name of a plugin to load from plugin-dir.",
                                    .repeatable = true}};
  for (const std::string& plugin : plugins) {
    specs.push_back({.section = "plugins",
                     .key = "weight." + plugin,
                     .type = OptionType::kInt,
                     .defaults = {"1"},
                     .help = "The factor that the plugin's scores are multiplied by.",
                     .minimum = 0,
                     .maximum = 1000});
    specs.push_back(
        {.section = "plugins",
         .key = "on-failure." + plugin,
         .type = OptionType::kString,
         .defaults = {"open"},
         .allowed = {"open", "closed"},
         .help =
             "What to do when the plugin loses its vote: decide without it (open), or deny the container (closed)."});
    specs.push_back({.section = "plugins",
                     .key = "required." + plugin,
                     .type = OptionType::kBool,
                     .defaults = {"false"},
                     .help = "Whether to deny a container rather than place it without the plugin's vote, or on other "
                             "CPUs than the plugin picks."});
  }
  return specs;
}

}  // namespace

std::vector<OptionSpec> core_options(const std::vector<std::string>& plugins) {
  std::vector<OptionSpec> specs = daemon_options();
  for (OptionSpec& spec : placement_options()) specs.push_back(std::move(spec));
  for (OptionSpec& spec : nri_options()) specs.push_back(std::move(spec));
  for (OptionSpec& spec : plugin_options(plugins)) specs.push_back(std::move(spec));
  return specs;
}

}  // namespace topolet::config
