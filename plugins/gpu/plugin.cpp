#include <array>

#include "plugins/gpu/policy.hpp"

namespace {

constexpr std::array<topolet_str, 2> kAffinity = {{TOPOLET_STR("prefer"), TOPOLET_STR("require")}};

constexpr topolet_option text(topolet_str name, topolet_str value, topolet_str help) {
  return {name, TOPOLET_OPTION_STRING, 0, value, {nullptr, 0}, 0, 0, help};
}

constexpr std::array<topolet_str, 2> kSplit = {{TOPOLET_STR("device"), TOPOLET_STR("cpus")}};

constexpr std::array<topolet_option, 10> kOptions = {{
    {TOPOLET_STR("affinity"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("prefer"),
     {kAffinity.data(), kAffinity.size()},
     0,
     0,
     TOPOLET_STR(
         "Whether a container should (prefer) or must (require) run on nodes that are local to all its devices.")},
    {TOPOLET_STR("split"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("device"),
     {kSplit.data(), kSplit.size()},
     0,
     0,
     TOPOLET_STR("What to do with exclusive CPUs if the node of the devices has room for a part of them only: put that "
                 "part beside the devices (device), or all on a node that holds them (cpus).")},
    {TOPOLET_STR("keep-free"),
     TOPOLET_OPTION_BOOL,
     0,
     TOPOLET_STR("false"),
     {nullptr, 0},
     0,
     0,
     TOPOLET_STR("Whether to keep containers without devices off the nodes of GPUs while they fit elsewhere.")},
    text(TOPOLET_STR("headroom"), TOPOLET_STR("auto"),
         TOPOLET_STR(
             "How many CPUs beside each unused GPU containers without devices leave free while there are others: "
             "auto divides the allowed CPUs of a node by its GPUs; 0 for none.")),
    text(TOPOLET_STR("devices"), TOPOLET_STR(""),
         TOPOLET_STR("Further kinds of devices, separated by semicolons: NAME: path=PATTERN env=VARIABLE[=ITEM] "
                     "pci=HOW, where HOW "
                     "is sysfs, link:PATTERN, function:VENDOR[:DEVICE][/CLASS], item, address:ADDRESS or node:INDEX.")),
    text(TOPOLET_STR("sysfs-root"), TOPOLET_STR("/sys"), TOPOLET_STR("Where sysfs is mounted.")),
    text(TOPOLET_STR("proc-root"), TOPOLET_STR("/proc"), TOPOLET_STR("Where procfs is mounted.")),
    text(TOPOLET_STR("dev-root"), TOPOLET_STR("/dev"), TOPOLET_STR("Where the device nodes are.")),
    text(TOPOLET_STR("cdi-dirs"), TOPOLET_STR("/etc/cdi /var/run/cdi"),
         TOPOLET_STR("Directories of CDI specs, separated by spaces; a later one overrides an earlier one.")),
    text(TOPOLET_STR("nvml-library"), TOPOLET_STR("libnvidia-ml.so.1"),
         TOPOLET_STR("NVIDIA's management library, which knows the MIG devices; empty to use none.")),
}};

}  // namespace

TOPOLET_PLUGIN(topolet::gpu::Policy, "gpu", TOPOLET_GPU_VERSION, kOptions);
