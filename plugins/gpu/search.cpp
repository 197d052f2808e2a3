#include "plugins/gpu/search.hpp"

#include <algorithm>
#include <utility>

#include "plugins/gpu/paths.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::string_view kNvidiaEnv = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kCdiAnnotation = "cdi.k8s.io/";

bool means_none(std::string_view item) { return item == "none" || item == "void"; }

/// "nvidia.com/gpu", "runtime.nvidia.com/gpu" and so on.
bool is_nvidias(std::string_view kind) { return kind.ends_with("nvidia.com/gpu"); }

/// The number in "3", and at the end of "Ascend910-3".
std::string_view number_in(std::string_view item) {
  const std::size_t dash = item.rfind('-');
  const bool is_typed = dash != std::string_view::npos && dash > 0 && !number(item.substr(0, dash));
  return is_typed && number(item.substr(dash + 1)) ? item.substr(dash + 1) : item;
}

/// The numbers of "2-5"; none of other texts.
std::vector<std::string> range(std::string_view item) {
  constexpr std::uint32_t kMost = 1024;
  const std::size_t dash = std::min(item.find('-'), item.size());
  const std::uint32_t none = kMost;
  const std::uint32_t first = number(item.substr(0, dash)).value_or(none);
  const std::uint32_t last = dash < item.size() ? number(item.substr(dash + 1)).value_or(none) : none;
  std::vector<std::string> numbers;
  for (std::uint32_t n = first; n <= last && last < kMost; ++n) numbers.push_back(std::to_string(n));
  return numbers;
}

class Search {
 public:
  Search(const TopologyNames& names, const std::vector<Kind>& kinds)
      : names_(names), kinds_(kinds), nvidia_(names), paths_(names, kinds) {}

  Sought take(const topolet_workload& workload) {
    for (std::size_t i = 0; i < workload.devices.count; ++i) add_path(sdk::text(workload.devices.items[i]));
    for (std::size_t i = 0; i < workload.cdi_devices.count; ++i) add_cdi(sdk::text(workload.cdi_devices.items[i]));
    for (std::size_t i = 0; i < workload.annotations.count; ++i) {
      const topolet_kv& annotation = workload.annotations.items[i];
      if (!sdk::text(annotation.key).starts_with(kCdiAnnotation)) continue;
      for (const std::string& name : split(sdk::text(annotation.value), ',')) add_cdi(name);
    }
    for (std::size_t i = 0; i < workload.env.count; ++i) {
      const std::string_view name = sdk::text(workload.env.items[i].key);
      // Of a variable that is set twice the last word counts.
      if (sdk::value_of(workload.env, name).data() == sdk::text(workload.env.items[i].value).data()) {
        add_env(name, sdk::text(workload.env.items[i].value));
      }
    }
    return std::move(sought_);
  }

 private:
  bool add(std::string_view name, const std::optional<Spot>& spot) {
    if (!spot) return false;
    const bool is_known = std::any_of(sought_.devices.begin(), sought_.devices.end(),
                                      [&spot](const Device& device) { return device.spot == *spot; });
    if (!is_known) sought_.devices.push_back({shown(name), *spot});
    return true;
  }

  void miss(std::string_view name, const std::string& why) {
    std::string text = shown(name) + ": " + why;
    const bool is_said = std::find(sought_.unknown.begin(), sought_.unknown.end(), text) != sought_.unknown.end();
    if (!is_said) sought_.unknown.push_back(std::move(text));
  }

  /// How many devices it found.
  std::size_t add_path(std::string_view path) {
    const Paths::Found found = paths_.find(path);
    for (const Spot& spot : found.spots) add(path, spot);
    if (found.spots.empty() && !found.missing.empty()) miss(path, found.missing);
    return found.spots.size();
  }

  void add_env(std::string_view name, std::string_view value) {
    if (name == kNvidiaEnv) return add_nvidia_items(value);
    for (const Kind& kind : kinds_) {
      if (!kind.env.empty() && matched(kind.env, name)) add_items(kind, name, value);
    }
  }

  void add_nvidia_items(std::string_view value) {
    for (const std::string& item : split(value, ',')) {
      if (means_none(item)) continue;
      if (item.find('=') != std::string::npos) {
        add_cdi(item);
      } else {
        add_nvidia_item(std::string(kNvidiaEnv) + '=' + item, item);
      }
    }
  }

  void add_nvidia_item(std::string_view name, std::string_view item) {
    if (item == "all") {
      const std::vector<Spot> all = nvidia_.all();
      for (const Spot& spot : all) add(name, spot);
      if (all.empty()) miss(name, "no NVIDIA GPU is known");
      return;
    }
    std::string why;
    if (!add(name, nvidia_.named(item, why))) miss(name, why);
  }

  /// Numbers, ranges of them, "all", PCI addresses and device paths.
  void add_items(const Kind& kind, std::string_view name, std::string_view value) {
    for (const std::string& item : split(value, ',')) {
      if (means_none(item)) continue;
      if (item == "all") {
        for (const Spot& spot : paths_.all(kind)) add(name, spot);
      } else if (const std::vector<std::string> numbers = range(item); !numbers.empty()) {
        for (const std::string& n : numbers) add_item(kind, name, n);
      } else {
        add_item(kind, name, item);
      }
    }
  }

  void add_item(const Kind& kind, std::string_view name, const std::string& item) {
    const std::string label = std::string(name) + '=' + item;
    if (add(label, names_.at(pci_address(item).value_or("")))) return;
    if (item.front() == '/') {
      if (add_path(item) == 0) miss(label, "no device of this path is known");
      return;
    }
    std::optional<Spot> spot;
    if (kind.path.find('*') != std::string::npos) {
      const Paths::Found found = paths_.find(filled(kind.path, number_in(item)));
      if (!found.spots.empty()) spot = found.spots.front();
    } else {
      spot = paths_.of_kind(kind, item);
    }
    if (!add(label, spot)) miss(label, "no PCI device is known for it");
  }

  void add_cdi(std::string_view full) {
    // The specs are files of this machine, but name devices as every machine does.
    const CdiDevices& known = names_.inventory().cdi.devices;
    const auto device = known.find(full);
    if (device == known.end()) return add_cdi_name(full, "no CDI spec has it");
    const std::size_t before = sought_.devices.size() + sought_.unknown.size();
    std::size_t found = 0;
    for (const std::string& path : device->second.paths) found += add_path(path);
    for (const auto& [name, value] : device->second.env) add_env(name, value);
    const bool has_said = sought_.devices.size() + sought_.unknown.size() > before;
    if (found == 0 && !has_said) add_cdi_name(full, "no device node of its CDI spec has a known place");
  }

  /// By what the name itself says: NVIDIA's specs are generated with the names of its index, UUID and type.
  void add_cdi_name(std::string_view full, const std::string& why) {
    const std::size_t equals = full.find('=');
    const std::string_view kind = full.substr(0, equals);
    std::string_view name = equals == std::string_view::npos ? std::string_view() : full.substr(equals + 1);
    if (is_nvidias(kind)) {
      for (const std::string_view type : {"gpu", "mig"}) {
        if (name.starts_with(type)) name.remove_prefix(type.size());
      }
      std::string ignored;
      if (name == "all") return add_nvidia_item(full, name);
      if (add(full, nvidia_.named(name, ignored))) return;
    }
    if (add(full, names_.at(pci_address(name).value_or(""))) || add(full, names_.named(name))) return;
    std::string text = why;
    const std::vector<std::string>& faults = names_.inventory().cdi.faults;
    if (!faults.empty()) text += "; " + shown(faults.front());
    miss(full, text);
  }

  const TopologyNames& names_;
  const std::vector<Kind>& kinds_;
  const NvidiaGpus nvidia_;
  const Paths paths_;
  Sought sought_;
};

}  // namespace

Sought devices_of(const topolet_workload& workload, const TopologyNames& names, const std::vector<Kind>& kinds) {
  return Search(names, kinds).take(workload);
}

}  // namespace topolet::gpu
