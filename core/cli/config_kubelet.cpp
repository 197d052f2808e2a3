// topolet config kubelet: what the kubelet must keep back so that its allocatable is what topolet can grant.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/file_exists.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/machine/kubepods.hpp"
#include "core/machine/machine.hpp"
#include "core/placement/settings.hpp"
#include "core/topology/discover.hpp"

namespace topolet::cli {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
/// As hwloc calls memory that belongs to a GPU.
constexpr const char* kGpuMemory = "GPUMemory";
/// The default of the kubelet's evictionHard for memory.available, which the kubelet takes off what pods may request.
constexpr std::int64_t kDefaultEvictionBytes = 100 * kMebibyte;

struct Reservation {
  std::size_t cpus = 0;                ///< of those online
  std::vector<std::string> cpu_parts;  ///< what they are, for people
  std::int64_t memory_bytes = 0;
  std::vector<std::string> memory_parts;
  std::string of_isolated;  ///< who gets those of them that the kernel isolates; empty: nobody, or there are none
  std::string advice;       ///< how pods would have more
};

using placement::IsolatedRule;

bool may_deny_exclusive_cpus(const placement::PlacementRules& rules) {
  const bool may_share = rules.when_full == placement::WhenFull::kShare && rules.isolated != IsolatedRule::kAlways;
  return rules.exclusive != placement::ExclusiveRule::kNever && !may_share;
}

/// Returns true if pods can have CPUs that the kernel isolates. CPUs that only the reserved namespaces may take are the
/// system's.
bool may_have_isolated(const placement::PlacementRules& rules) {
  if (rules.exclusive == placement::ExclusiveRule::kNever) return false;
  if (rules.isolated != IsolatedRule::kAnnotated) return true;
  const auto& permitted = rules.annotations;
  const bool may_say_so =
      !permitted || std::find(permitted->begin(), permitted->end(), placement::kIsolatedAnnotation) != permitted->end();
  return may_say_so && !rules.exclusive_namespaces.empty();
}

const char* who_gets_isolated(IsolatedRule rule) {
  switch (rule) {
    case IsolatedRule::kAnnotated:
      return "only containers with the annotation topolet.io/isolated, in placement.exclusive-namespaces, get them,\n"
             "  # others are denied CPUs of their own once the rest is used up";
    case IsolatedRule::kPrefer:
      return "a container with CPUs of its own gets some of these, or some of the others, but never of both";
    case IsolatedRule::kAlways:
      break;
  }
  return "containers with CPUs of their own get only these (placement.isolated = always)";
}

void reserve(Reservation& reservation, const CpuSet& cpus, std::string_view why) {
  if (cpus.empty()) return;
  reservation.cpus += cpus.size();
  reservation.cpu_parts.push_back(fmt::format("CPUs {} ({})", cpus.to_string(), why));
}

/// The kubelet counts every online CPU. Exclusive CPUs come from the shared pool, down to min-shared-cpus, and from
/// the isolated ones, as far as pods can have these.
void reserve_cpus(Reservation& reservation, const topology::Topology& topology, const engine::CpuInventory& cpus,
                  const placement::PlacementRules& rules) {
  reserve(reservation, topology.online - cpus.allowed, "outside placement.allowed-cpus or the cgroup of the pods");
  reserve(reservation, cpus.reserved, "placement.reserved-cpus");
  const CpuSet isolated = (cpus.isolated & cpus.allowed) - cpus.reserved;
  if (!may_have_isolated(rules)) {
    reserve(reservation, isolated, "isolated by the kernel");
    if (!isolated.empty() && rules.exclusive != placement::ExclusiveRule::kNever)
      reservation.advice = " (placement.isolated = prefer or always lets pods have isolated CPUs)";
  } else if (!isolated.empty()) {
    reservation.of_isolated = fmt::format("CPUs {}, which the kernel isolates:\n  # {}", isolated.to_string(),
                                          who_gets_isolated(rules.isolated));
  }
  if (rules.isolated == IsolatedRule::kAlways && may_deny_exclusive_cpus(rules)) {
    return reserve(reservation, cpus.allowed - cpus.reserved - cpus.isolated,
                   "the shared pool, of which no container gets CPUs of its own: placement.isolated = always");
  }
  if (rules.min_shared_cpus == 0 || !may_deny_exclusive_cpus(rules)) return;
  reservation.cpus += rules.min_shared_cpus;
  reservation.cpu_parts.push_back(
      fmt::format("{} of the others, to stay shared (placement.min-shared-cpus)", rules.min_shared_cpus));
}

/// The values of section [numa], the last of each key; none if that plugin is not enabled.
std::map<std::string, std::string> numa_values(const config::RawConfig& raw) {
  std::map<std::string, std::string> values;
  const std::vector<std::string> enabled = config::enabled_plugins(raw).enabled;
  if (std::find(enabled.begin(), enabled.end(), "numa") == enabled.end()) return values;
  for (const config::ConfigEntry& entry : raw.entries) {
    if (entry.section == "numa") values[entry.key] = entry.value;
  }
  return values;
}

std::optional<std::int64_t> parse_amount(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> kUnits = {{{"", 1},
                                                                                {"k", 1000},
                                                                                {"M", 1'000'000},
                                                                                {"G", 1'000'000'000},
                                                                                {"T", 1'000'000'000'000},
                                                                                {"Ki", 1 << 10},
                                                                                {"Mi", kMebibyte},
                                                                                {"Gi", 1 << 30},
                                                                                {"Ti", std::int64_t{1} << 40}}};
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const auto* const known = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
  if (known == kUnits.end() || number > std::numeric_limits<std::int64_t>::max() / known->second) return std::nullopt;
  return number * known->second;
}

/// numa.reserved-memory: an amount for each node, or NODE:AMOUNT,NODE:AMOUNT. Absent if it is neither.
std::optional<std::vector<std::int64_t>> amounts_by_node(const topology::Topology& topology, std::string_view text) {
  std::vector<std::int64_t> amounts(topology.nodes.size(), 0);
  if (text.find(':') == std::string_view::npos) {
    const auto each = text.empty() ? 0 : parse_amount(text);
    if (!each) return std::nullopt;
    std::fill(amounts.begin(), amounts.end(), *each);
    return amounts;
  }
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto node = parse_amount(part.substr(0, colon));
    const auto amount = parse_amount(part.substr(std::min(colon + 1, part.size())));
    if (!node || !amount) return std::nullopt;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      if (topology.nodes[i].os_index == *node) amounts[i] = *amount;
    }
  }
  return amounts;
}

void reserve(Reservation& reservation, std::int64_t bytes, std::string_view why) {
  if (bytes <= 0) return;
  reservation.memory_bytes += bytes;
  reservation.memory_parts.push_back(fmt::format("{}Mi ({})", (bytes + kMebibyte - 1) / kMebibyte, why));
}

/// The kubelet counts the memory of every node, that of GPUs too. With memory = bind, the plugin numa uses none of
/// memory-only nodes.
Status reserve_memory(Reservation& reservation, const topology::Topology& topology,
                      const std::map<std::string, std::string>& numa) {
  const auto value = [&](const char* key) { return numa.count(key) != 0 ? numa.at(key) : std::string(); };
  const auto amounts = amounts_by_node(topology, value("reserved-memory"));
  if (!amounts) {
    return Error{Code::kInvalidArgument,
                 fmt::format("numa.reserved-memory: '{}' is not an amount of memory; write one amount for every node "
                             "(1Gi) or a comma-separated list of NODE:AMOUNT (0:1Gi,1:512Mi)",
                             value("reserved-memory"))};
  }
  std::int64_t reserved = 0;
  std::int64_t memory_only = 0;
  std::int64_t of_gpus = 0;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const topology::Node& node = topology.nodes[i];
    if (node.memory_only && node.subtype == kGpuMemory) {
      of_gpus += node.memory_bytes;
    } else if (node.memory_only && value("memory") == "bind") {
      memory_only += node.memory_bytes;
    } else {
      reserved += std::min((*amounts)[i], node.memory_bytes);
    }
  }
  reserve(reservation, reserved, "numa.reserved-memory");
  reserve(reservation, of_gpus, "memory of GPUs");
  reserve(reservation, memory_only, "nodes without CPUs, which numa.memory = bind leaves unused");
  return {};
}

Result<std::shared_ptr<const topology::Topology>> machine_of(const Invocation& invocation) {
  const std::string machine = invocation.text("topology");
  topology::DiscoverOptions options;
  if (file_exists(machine)) {
    options.xml_file = machine;
  } else {
    options.synthetic = machine;
  }
  if (invocation.has("isolated-cpus")) {
    const auto isolated = CpuSet::parse(invocation.text("isolated-cpus"));
    if (!isolated) return Error{Code::kInvalidArgument, "--isolated-cpus: " + isolated.error().message};
    options.isolated = *isolated;
  }
  return topology::discover(options);
}

/// What has the kubelet call topolet, and leave CPUs and memory nodes to it.
void print_endpoint(const config::Options& options) {
  fmt::print(
      "containerRuntimeEndpoint: unix://{}\n"
      "# topolet chooses CPUs and memory nodes, so the kubelet's own managers stay off. If one of them was on, the\n"
      "# kubelet does not start while cpu_manager_state and memory_manager_state in its --root-dir (/var/lib/kubelet)\n"
      "# name its policy: once topoletd has started for the first time, which reads the first of them, stop the "
      "kubelet,\n"
      "# move both away, and start it.\n"
      "cpuManagerPolicy: none\n"
      "memoryManagerPolicy: None\n"
      "topologyManagerPolicy: none\n",
      options.daemon.listen);
}

void print(const Reservation& reservation, std::size_t online, const config::Options& options,
           const std::string& file) {
  fmt::print(
      "# With this the kubelet admits no more than topolet can place with {}.\n"
      "# Print it again when that file or the machine changes.\n"
      "apiVersion: kubelet.config.k8s.io/v1beta1\n"
      "kind: KubeletConfiguration\n",
      file);
  if (options.daemon.front == config::Front::kNri) {
    fmt::print(
        "# The runtime asks topolet (daemon.front = nri), so that the kubelet goes on calling the runtime. Its own\n"
        "# managers must be off, which they are by default: what they set would count as the kubelet's word.\n");
  } else {
    print_endpoint(options);
  }
  fmt::print(
      "# Empty, because the number of CPUs listed here would replace systemReserved.cpu.\n"
      "reservedSystemCPUs: \"\"\n"
      "# What kubeReserved reserves comes on top, so leave out of kubeReserved what is counted here.\n"
      "systemReserved:\n");
  fmt::print("  # Of {} CPUs online pods can request {}.{}\n", online, online - reservation.cpus,
             reservation.cpu_parts.empty() ? "" : " Not available to them:");
  for (const std::string& part : reservation.cpu_parts) fmt::print("  #   {}\n", part);
  if (!reservation.of_isolated.empty()) fmt::print("  # Among them are {}.\n", reservation.of_isolated);
  fmt::print("  cpu: \"{}\"\n", reservation.cpus);
  const std::int64_t memory = reservation.memory_bytes - kDefaultEvictionBytes;
  if (memory <= 0) return;
  fmt::print("  # Memory not available to pods, less the 100Mi that the default of evictionHard keeps back:\n");
  for (const std::string& part : reservation.memory_parts) fmt::print("  #   {}\n", part);
  fmt::print("  memory: {}Mi\n", (memory + kMebibyte - 1) / kMebibyte);
}

}  // namespace

void declare_config_kubelet(Options& options) {
  namespace po = boost::program_options;
  options.add_options()("config", po::value<std::string>()->value_name("FILE"),
                        fmt::format("topoletd's configuration; {} unless given.", config::kDefaultConfigFile).c_str())(
      "topology", po::value<std::string>()->value_name("MACHINE"),
      "Another machine than this one: a file that `lstopo FILE.xml` wrote, or an hwloc synthetic description.")(
      "isolated-cpus", po::value<std::string>()->value_name("CPUS"),
      "CPUs to treat as isolated by the kernel (isolcpus).");
}

Status print_kubelet_config(const Invocation& invocation) {
  const auto options = configuration(invocation);
  if (!options) return options.error();
  const auto topology = machine_of(invocation);
  if (!topology) return topology.error();
  std::optional<CpuSet> pods;
  if (!invocation.has("topology")) {
    auto cpus = machine::kubepods_cpus("/sys/fs/cgroup");
    if (!cpus) return cpus.error();
    pods = *std::move(cpus);
  }
  if (Status fits = machine::check_machine(**topology, options->placement, pods); !fits) return fits;
  const engine::Engine::Machine machine = machine::make_machine(*topology, options->placement, pods);

  Reservation reservation;
  reserve_cpus(reservation, **topology, machine.cpus, options->placement.rules);
  if (const std::size_t online = (*topology)->online.size(); reservation.cpus >= online) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("pods could not request any of the {} CPUs, as these are not available to them: {}; change "
                    "section [placement] of the configuration{}",
                    online, fmt::join(reservation.cpu_parts, ", "), reservation.advice)};
  }
  std::vector<std::string> arguments;
  if (invocation.has("config")) arguments = {"--config", invocation.text("config")};
  const config::RawConfig raw = config::read_raw(arguments);
  if (Status reserved = reserve_memory(reservation, **topology, numa_values(raw)); !reserved) return reserved;
  print(reservation, (*topology)->online.size(), *options, raw.file.string());
  return {};
}

}  // namespace topolet::cli
