#include "plugins/gpu/policy.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace topolet::gpu {
namespace {

constexpr std::string_view kNoPolicy = "gpu has no policy yet";
constexpr std::array<std::string_view, 5> kKinds = {"gpu", "network", "openfabrics", "block", "coprocessor"};

std::string key_of(const topolet_workload& workload) {
  return std::string(sdk::text(workload.pod_uid)) + '/' + std::string(sdk::text(workload.container_name));
}

bool ends_with_name(std::string_view path, std::string_view name) {
  return path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '/';
}

bool names(const topolet_workload& workload, std::string_view name, std::string_view uuid) {
  for (std::size_t i = 0; i < workload.devices.count; ++i) {
    if (ends_with_name(sdk::text(workload.devices.items[i]), name)) return true;
  }
  if (uuid.empty()) return false;
  const auto has = [uuid](topolet_str text) { return sdk::text(text).find(uuid) != std::string_view::npos; };
  for (std::size_t i = 0; i < workload.cdi_devices.count; ++i) {
    if (has(workload.cdi_devices.items[i])) return true;
  }
  for (std::size_t i = 0; i < workload.env.count; ++i) {
    if (has(workload.env.items[i].value)) return true;
  }
  return false;
}

/// From the device up: the bridges above it, host bridge last.
std::vector<std::uint32_t> bridges_above(const topolet_topology& topology, std::uint32_t bridge) {
  std::vector<std::uint32_t> above;
  const auto bridges = sdk::pci_bridges(topology);
  for (; bridge < bridges.size(); bridge = bridges[bridge].parent) above.push_back(bridge);
  return above;
}

bool share_a_package(const topolet_topology& topology, const topolet_pci_device& a, const topolet_pci_device& b) {
  return std::any_of(topology.packages, topology.packages + topology.package_count, [&](topolet_set package) {
    return sdk::size_of_both(package, a.cpus) > 0 && sdk::size_of_both(package, b.cpus) > 0;
  });
}

std::string names_of(const topolet_topology& topology, const std::vector<std::uint32_t>& devices) {
  std::string text;
  for (const std::uint32_t device : devices) {
    const topolet_os_device& seen = sdk::os_devices(topology)[device];
    text += (text.empty() ? "" : ", ") + std::string(sdk::text(seen.name)) + " on nodes " +
            sdk::Set(seen.nodes).to_string();
  }
  return text.empty() ? "no device of the container is known" : text;
}

}  // namespace

PolicyOptions read_options(const sdk::Options& options) {
  PolicyOptions read;
  if (options["affinity"] == "require") read.affinity = Affinity::kRequire;
  read.keep_free = options["keep-free"] == "true";
  std::string_view rest = options["kinds"];
  while (!rest.empty()) {
    const std::string_view kind = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), kind.size() + 1));
    if (kind.empty()) continue;
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
      throw std::invalid_argument("option kinds: there is no kind of device '" + std::string(kind) +
                                  "'; there are gpu, network, openfabrics, block and coprocessor");
    }
    read.kinds.emplace_back(kind);
  }
  return read;
}

Closeness closeness(const topolet_topology& topology, std::uint32_t a, std::uint32_t b) {
  const topolet_pci_device& first = sdk::pci_devices(topology)[a];
  const topolet_pci_device& second = sdk::pci_devices(topology)[b];
  const std::vector<std::uint32_t> above = bridges_above(topology, second.bridge);
  for (const std::uint32_t bridge : bridges_above(topology, first.bridge)) {
    if (std::find(above.begin(), above.end(), bridge) == above.end()) continue;
    const bool is_host_bridge = sdk::pci_bridges(topology)[bridge].parent == TOPOLET_NONE;
    return is_host_bridge ? Closeness::kSameRoot : Closeness::kSameSwitch;
  }
  if (sdk::size_of_both(first.nodes, second.nodes) > 0) return Closeness::kSameNode;
  return share_a_package(topology, first, second) ? Closeness::kSamePackage : Closeness::kFar;
}

std::vector<std::uint32_t> devices_of(const topolet_topology& topology, const topolet_workload& workload) {
  std::vector<std::uint32_t> found;
  const auto devices = sdk::os_devices(topology);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    if (names(workload, sdk::text(devices[i].name), sdk::value_of(devices[i].info, "NVIDIAUUID"))) found.push_back(i);
  }
  return found;
}

Policy::Policy(const sdk::Options& options, const sdk::Host& host) : options_(read_options(options)), host_(host) {
  host_.log(TOPOLET_LOG_INFO, kNoPolicy);
}

void Policy::score(const topolet_request& request, sdk::Scores& scores) const {
  const topolet_topology& topology = *request.topology;
  const std::string reason =
      std::string(kNoPolicy) + "; " + names_of(topology, devices_of(topology, *request.workload));
  for (std::size_t i = 0; i < request.candidate_count; ++i) scores.abstain(i, reason);
}

void Policy::adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const {
  const topolet_topology& topology = *request.request->topology;
  if (devices_of(topology, *request.request->workload).empty()) return;
  adjustments.reason(kNoPolicy);
}

void Policy::notify(const topolet_event& event) const {
  const std::string key = key_of(*event.workload);
  if (event.kind == TOPOLET_EVENT_RELEASED) {
    host_.remove(key);
    return;
  }
  const std::vector<std::uint32_t> devices = devices_of(*event.topology, *event.workload);
  if (!devices.empty()) host_.set(key, names_of(*event.topology, devices));
}

void Policy::tick(const topolet_tick_request& request, sdk::Wishes& /*wishes*/) const {
  host_.log(TOPOLET_LOG_DEBUG, "sees " + std::to_string(request.topology->os_device_count) + " devices and " +
                                   std::to_string(request.ledger->entry_count) + " containers");
}

}  // namespace topolet::gpu
