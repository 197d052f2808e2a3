#include "plugins/gpu/policy.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "plugins/gpu/cpu_split.hpp"
#include "plugins/gpu/device_catalog.hpp"
#include "plugins/gpu/headroom.hpp"
#include "plugins/gpu/keep_free.hpp"
#include "plugins/gpu/local_cpu_verdicts.hpp"
#include "plugins/gpu/locality_verdicts.hpp"
#include "plugins/gpu/pod.hpp"
#include "plugins/gpu/proposals.hpp"
#include "plugins/gpu/text.hpp"
#include "plugins/gpu/watched_devices.hpp"

namespace topolet::gpu {
namespace {

using sdk::Verdict;

constexpr std::string_view kDefaultNvmlLibrary = "libnvidia-ml.so.1";

/// The tags that list, by address, those devices of a container that the topology does not show: this one, and others
/// whose keys continue with a number.
constexpr std::string_view kLateDevices = "late-devices";

/// Writes as many tags as are needed.
void tag_late_devices(const std::set<std::string_view>& addresses, sdk::Adjustments& adjustments) {
  std::vector<std::string> values;
  for (const std::string_view address : addresses) {
    if (values.empty() || values.back().size() + 1 + address.size() > TOPOLET_ADJUST_MAX_TAG) {
      values.emplace_back(address);
    } else {
      values.back().append(",").append(address);
    }
  }
  values.resize(std::min<std::size_t>(values.size(), TOPOLET_ADJUST_MAX_TAGS));
  for (std::size_t i = 0; i < values.size(); ++i)
    adjustments.tag(std::string(kLateDevices) + (i == 0 ? "" : "." + std::to_string(i)), values[i]);
}

void add_known_device(std::string_view name, const DeviceCatalog& catalog, ContainerDevices& container) {
  std::optional<DeviceRef> ref = catalog.by_address(name);
  if (!ref) ref = catalog.by_name(name);
  const auto is_it = [&ref](const Device& device) { return device.ref == *ref; };
  if (ref && std::none_of(container.devices.begin(), container.devices.end(), is_it))
    container.devices.push_back({std::string(name), *ref});
}

/// Adds the devices that a container was found to use: when it is placed anew, its environment is not known.
void add_known_devices(const topolet_workload& workload, const DeviceCatalog& catalog, ContainerDevices& container) {
  for (std::size_t i = 0; i < workload.used_devices.count; ++i)
    add_known_device(sdk::text(workload.used_devices.items[i]), catalog, container);
  const std::string late_devices = "gpu/" + std::string(kLateDevices);
  for (std::size_t i = 0; i < workload.tags.count; ++i) {
    if (!sdk::text(workload.tags.items[i].key).starts_with(late_devices)) continue;
    for (const std::string& address : split(sdk::text(workload.tags.items[i].value), ','))
      add_known_device(address, catalog, container);
  }
}

bool is_in_topology(const DeviceRef& ref) { return ref.pci_device != TOPOLET_NONE || ref.os_device != TOPOLET_NONE; }

/// A container without devices whose pod has a GPU: its place is with its pod. One that requests nothing has no place.
bool is_beside_gpus(const topolet_request& request, const Pod& pod) {
  const topolet_demand* const demand = request.workload->demand;
  return pod.uses_accelerators && (request.exclusive != 0 || (demand != nullptr && demand->cpu_request_milli > 0));
}

}  // namespace

Policy::Policy(const sdk::Options& options, const sdk::Host& host) : options_(read_options(options)), host_(host) {
  for (const std::string& why :
       {why_missing("sysfs-root", options_.roots.sysfs), why_missing("proc-root", options_.roots.proc),
        why_missing("dev-root", options_.roots.dev)}) {
    if (!why.empty()) host_.log(TOPOLET_LOG_WARN, why);
  }
  variables_.push_back(TOPOLET_STR("NVIDIA_VISIBLE_DEVICES"));
  for (const DeviceKind& kind : options_.kinds) {
    if (!kind.env.empty()) variables_.push_back(sdk::borrow(kind.env));
  }
  inventory_.sysfs = options_.roots.sysfs;
  apply(read_changes(true));
  inventory_.nvml = query_nvml(options_.nvml_library);
  host_.log(TOPOLET_LOG_INFO, "found " + std::to_string(inventory_.devices.locations.size()) + " device nodes, " +
                                  std::to_string(inventory_.cdi.devices.size()) + " CDI devices and " +
                                  std::to_string(inventory_.devices.nvidia.size()) +
                                  " NVIDIA GPUs in the files of this machine");
}

topolet_reads Policy::reads() const {
  static constexpr std::array<topolet_str, 1> kForeign = {{TOPOLET_STR("cdi.k8s.io/*")}};
  return {sizeof(topolet_reads), 0, {variables_.data(), variables_.size()}, {kForeign.data(), kForeign.size()}};
}

void Policy::propose(const topolet_request& request, sdk::Proposals& proposals) const {
  const ContainerDevices container = devices_to_be_near(container_devices(request));
  for (const sdk::Set& nodes : node_sets_near_devices(request, container)) proposals.nodes(nodes.view());
  if (!options_.keep_free || !container.empty()) return;
  if (const auto nodes = nodes_kept_free_of_gpus(request)) proposals.nodes(nodes->view());
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const { scores.give(verdicts(request)); }

Rules Policy::rules_for(const topolet_request& request) const {
  Rules rules = options_.rules;
  rules.whole_cores = sdk::has_flag(request, TOPOLET_REQUEST_WHOLE_CORES);
  return rules;
}

void Policy::pick(const topolet_pick_request& picking, sdk::Picks& picks) const {
  const auto ask_for = [&picks](const std::vector<CpuMinimum>& minimums) {
    for (const CpuMinimum& minimum : minimums) picks.at_least(minimum.cpus.view(), minimum.count);
  };
  if (picking.stage != TOPOLET_PICK_CHOOSE && picking.stage != TOPOLET_PICK_REVIEW) return;
  const ContainerDevices container = devices_to_be_near(container_devices(*picking.request));
  const Rules rules = rules_for(*picking.request);
  const bool is_open = has_choice(picking);
  if (container.devices.empty()) {
    const bool keeps_away = options_.keep_free && container.empty() && is_open;
    if (keeps_away && !is_beside_gpus(*picking.request, pod_of(*picking.request)))
      ask_for(split_keeping_free(picking, rules));
    return;
  }
  ask_for(split_by_local_cpus(picking, container, rules));
  std::string missed = missed_local_cpus(picking, container);
  if (is_open) {
    ask_for(split_among_nodes(picking, container, rules));
    if (std::string devices = missed_devices(picking, container, rules); !devices.empty()) {
      missed = std::move(devices);
    }
  }
  if (missed.empty()) return;
  if (rules.affinity == Affinity::kRequire) {
    picks.reject(kRequireText + missed);
  } else {
    picks.unmet(missed);
  }
}

void Policy::adjust(const topolet_adjust_request& adjusting, sdk::Adjustments& adjustments) const {
  const topolet_request& request = *adjusting.request;
  const DeviceCatalog catalog(*request.topology, inventory_);
  const ContainerDevices container = container_devices(request);
  std::set<std::string_view> names;
  std::set<std::string_view> late;
  for (const Device& device : container.devices) {
    if (!device.is_watched) (is_in_topology(device.ref) ? names : late).insert(catalog.name_of(device.ref));
  }
  names.erase("");
  late.erase("");
  for (const std::string_view name : names) adjustments.uses(name);
  tag_late_devices(late, adjustments);
  const std::string watched = describe_watched(*request.topology, container);
  if (!watched.empty()) adjustments.reason(watched);
}

/// Why the machine's files are not used.
std::string Policy::foreign_files_text(const topolet_topology& topology) const {
  constexpr std::size_t kMaxLength = 256;
  return "NVML and the files below " + printable(options_.roots.sysfs.string(), kMaxLength) + " and " +
         printable(options_.roots.proc.string(), kMaxLength) + ": they describe another machine, which has CPUs " +
         printable(inventory_.devices.online) + " online, while this one has CPUs " +
         (inventory_.cpus | sdk::Set(topology.online)).to_string();
}

ContainerDevices Policy::container_devices(const topolet_request& request) const {
  const DeviceCatalog catalog(*request.topology, inventory_);
  ContainerDevices container = find_container_devices(*request.workload, catalog, options_.kinds);
  add_known_devices(*request.workload, catalog, container);
  mark_watched(request, catalog, container);
  container.cpu_nodes = inventory_.cpu_nodes;
  if (container.empty()) return container;
  // Files that somebody configured are expected to be of use. Of the defaults nobody expects that they describe a
  // machine that is simulated here.
  const Roots defaults;
  const bool are_configured = options_.roots.sysfs != defaults.sysfs || options_.roots.proc != defaults.proc ||
                              (options_.nvml_library != kDefaultNvmlLibrary && !inventory_.nvml.gpus.empty());
  if (are_configured && catalog.machine_files() == nullptr) {
    container.unresolved.push_back(foreign_files_text(*request.topology));
  }
  return container;
}

std::vector<Verdict> Policy::verdicts(const topolet_request& request) const {
  const ContainerDevices container = devices_to_be_near(container_devices(request));
  Rules rules = rules_for(request);
  // A container that only watches devices is not denied for being far from some.
  if (watches_only(container)) rules.affinity = Affinity::kPrefer;
  if (std::vector<Verdict> by_cpus = local_cpu_verdicts(request, container, rules); !by_cpus.empty()) return by_cpus;
  if (!container.empty()) return locality_verdicts(request, container, rules);
  const Pod pod = pod_of(request);
  if (is_beside_gpus(request, pod)) return {};
  return options_.keep_free ? keep_free_verdicts(request, rules) : headroom_verdicts(request, options_.headroom, pod);
}

void Policy::tick(const topolet_tick_request& request, sdk::Wishes& /*wishes*/) {
  inventory_.learn(*request.topology);
  if (!inventory_.files_confirmed && !std::exchange(has_warned_foreign_files_, true)) {
    host_.log(TOPOLET_LOG_WARN, "not used: " + foreign_files_text(*request.topology));
  }
  // Reading takes less than this as a rule; what takes longer is applied by a later tick.
  constexpr std::chrono::milliseconds kMaxWait{10};
  if (!pending_changes_.valid()) {
    const std::uint64_t generation = request.topology->generation;
    const bool topology_changed = generation != std::exchange(topology_generation_, generation);
    pending_changes_ =
        std::async(std::launch::async, [this, topology_changed] { return read_changes(topology_changed); });
  }
  if (pending_changes_.wait_for(kMaxWait) == std::future_status::ready) apply(pending_changes_.get());
}

Policy::FileChanges Policy::read_changes(bool read_devices) const {
  FileChanges changes;
  // Taken before the specs are read, so that one written in between is read the next time.
  changes.cdi_fingerprint = cdi_fingerprint(options_.roots);
  if (changes.cdi_fingerprint != cdi_fingerprint_) changes.cdi = read_cdi(options_.roots);
  if (read_devices || has_changed(inventory_.devices))
    changes.devices = read_kernel_devices(options_.roots, options_.kinds);
  return changes;
}

void Policy::apply(FileChanges changes) {
  if (changes.devices) inventory_.devices = *std::move(changes.devices);
  if (!changes.cdi) return;
  cdi_fingerprint_ = std::move(changes.cdi_fingerprint);
  inventory_.cdi = *std::move(changes.cdi);
  for (const std::string& error : inventory_.cdi.errors) host_.log(TOPOLET_LOG_WARN, error);
}

}  // namespace topolet::gpu
