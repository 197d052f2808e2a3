#include "plugins/gpu/search.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plugins/gpu/paths.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::string_view kNvidiaEnv = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kCdiAnnotation = "cdi.k8s.io/";

/// More than a node has devices. Variables and annotations are as long as their author likes, and a decision waits.
constexpr std::size_t kMostNames = 1024;

bool means_none(std::string_view item) { return item == "none" || item == "void"; }

/// "nvidia.com/gpu", "runtime.nvidia.com/gpu" and so on.
bool is_nvidias(std::string_view kind) { return kind.ends_with("nvidia.com/gpu"); }

/// "/dev/nvidia0", also below another root, and not "/dev/nvidiactl".
bool is_nvidia_node(std::string_view path) {
  const auto star = matched("/dev/nvidia*", path.substr(std::min(path.size(), path.rfind("/dev/"))));
  return star && number(*star);
}

/// The number in "3", and at the end of "Ascend910-3".
std::string_view number_in(std::string_view item) {
  const std::size_t dash = item.rfind('-');
  const bool is_typed = dash != std::string_view::npos && dash > 0 && !number(item.substr(0, dash));
  return is_typed && number(item.substr(dash + 1)) ? item.substr(dash + 1) : item;
}

/// One that range() gives nothing for is "5-2", or longer than any machine's.
bool is_like_a_range(std::string_view item) {
  const std::size_t dash = std::min(item.find('-'), item.size());
  const auto is_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash < item.size() && is_digits(item.substr(0, dash)) && is_digits(item.substr(dash + 1));
}

constexpr const char* kNoRange = "no range, which is two numbers below 1024, the lower one first";

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
    // Of a variable that is set twice the last word counts.
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < workload.env.count; ++i) last[sdk::text(workload.env.items[i].key)] = i;
    for (std::size_t i = 0; i < workload.env.count; ++i) {
      const std::string_view name = sdk::text(workload.env.items[i].key);
      if (last.at(name) == i && !replaced_.contains(name)) add_env(name, sdk::text(workload.env.items[i].value));
    }
    const std::string rest = "what it names beyond the first " + std::to_string(kMostNames);
    if (is_cut_) sought_.unknown.insert(sought_.unknown.begin(), rest);
    return std::move(sought_);
  }

 private:
  /// How many devices and how many reasons.
  struct Told {
    std::size_t found = 0;
    std::size_t missed = 0;
  };

  /// Looks a name up for the first time only, and not when there were too many.
  template <class Look>
  void once(std::string_view name, const Look& look) {
    if (const auto known = told_of_.find(name); known != told_of_.end()) {
      told_.found += known->second.found;
      told_.missed += known->second.missed;
      return;
    }
    is_cut_ = is_cut_ || told_of_.size() == kMostNames;
    if (is_cut_) return;
    Told& told = told_of_.emplace(name, Told()).first->second;
    const Told before = told_;
    look();
    told = {told_.found - before.found, told_.missed - before.missed};
  }

  bool add(std::string_view name, const std::optional<Spot>& spot) { return add(name, spot, name); }

  /// `self`: what tells it from others that are only known to be near to a node.
  bool add(std::string_view name, const std::optional<Spot>& spot, std::string_view self) {
    if (!spot) return false;
    ++told_.found;
    const bool tells_itself = spot->pci_device != TOPOLET_NONE || spot->os_device != TOPOLET_NONE;
    const bool is_known = tells_itself ? std::any_of(sought_.devices.begin(), sought_.devices.end(),
                                                     [&spot](const Device& device) { return device.spot == *spot; })
                                       : !selves_.emplace(self).second;
    if (!is_known) sought_.devices.push_back({shown(name), *spot});
    return true;
  }

  void miss(std::string_view name, const std::string& why) {
    ++told_.missed;
    std::string text = shown(name) + ": " + why;
    const bool is_said = std::find(sought_.unknown.begin(), sought_.unknown.end(), text) != sought_.unknown.end();
    if (!is_said) sought_.unknown.push_back(std::move(text));
  }

  void add_path(std::string_view path) {
    once(path, [&] {
      const Paths::Found found = paths_.find(path);
      for (const Spot& spot : found.spots) add(path, spot);
      if (found.spots.empty() && !found.missing.empty()) miss(path, found.missing);
    });
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
      const std::string name = std::string(kNvidiaEnv) + '=' + item;
      if (item.find('=') != std::string::npos) {
        add_cdi(item);
      } else {
        once(name, [&] { add_nvidia_item(name, item); });
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
    if (!add_nvidia_device(name, item, why)) miss(name, why);
  }

  /// The table's word on certain items counts before the plugin's own, and on any item after it.
  bool add_nvidia_device(std::string_view name, std::string_view item, std::string& why) {
    if (add_by_table(name, item, true, why)) return true;
    std::string own;
    if (add(name, nvidia_.named(item, own)) || add_by_table(name, item, false, why)) return true;
    if (why.empty()) why = own;
    return false;
  }

  bool add_by_table(std::string_view name, std::string_view item, bool for_certain, std::string& why) {
    for (const Kind& kind : kinds_) {
      if (kind.env.empty() || !matched(kind.env, kNvidiaEnv) || kind.item.empty() == for_certain) continue;
      if (!is_for(kind, item)) continue;
      std::string self = std::string(kNvidiaEnv) + '=' + std::string(item);
      const auto spot = of_item(kind, item, self);
      if (add(name, spot, self)) return true;
      if (for_certain) why = Paths::why_unknown(kind);
    }
    return false;
  }

  static bool is_for(const Kind& kind, std::string_view item) { return kind.item.empty() || matched(kind.item, item); }

  /// `self` becomes the device's path, if the kind has one.
  std::optional<Spot> of_item(const Kind& kind, std::string_view item, std::string& self) const {
    const auto star = matched(kind.item, item).value_or("");
    const std::string_view which = star.empty() ? number_in(item) : star;
    if (kind.path.find('*') == std::string::npos) return paths_.of_kind(kind, star.empty() ? item : star);
    self = filled(kind.path, which);
    const Paths::Found found = paths_.find(self);
    return found.spots.empty() ? std::nullopt : std::optional(found.spots.front());
  }

  /// Numbers, ranges of them, "all", PCI addresses and device paths.
  void add_items(const Kind& kind, std::string_view name, std::string_view value) {
    const std::string prefix = kind.name + ' ' + std::string(name) + '=';
    // The SR-IOV device plugin describes the devices of PCIDEVICE_X in JSON in PCIDEVICE_X_INFO.
    const bool is_json = trimmed(value).starts_with('{');
    for (const std::string& item : split(value, is_json ? '"' : ',')) {
      if (is_json && !pci_address(item)) continue;
      if (means_none(item)) continue;
      once(prefix + item, [&] {
        const std::vector<std::string> numbers = range(item);
        for (const std::string& n : numbers) once(prefix + n, [&] { add_item(kind, name, n); });
        if (item == "all") {
          add_all(kind, name);
        } else if (numbers.empty()) {
          add_item(kind, name, item);
        }
      });
    }
  }

  void add_all(const Kind& kind, std::string_view name) {
    const std::vector<Spot> all = paths_.all(kind);
    for (const Spot& spot : all) add(name, spot);
    if (all.empty()) miss(std::string(name) + "=all", "no device of this kind is known");
  }

  void add_item(const Kind& kind, std::string_view name, const std::string& item) {
    if (!is_for(kind, item)) return;
    const auto address = pci_address(item);
    // A pattern may match variables that nobody thought of, and their values are secrets.
    const bool may_be_told = address || kind.env.find('*') == std::string::npos;
    const std::string label = may_be_told ? std::string(name) + '=' + item : std::string(name);
    if (add(label, names_.at(address.value_or("")))) return;
    if (item.front() == '/') {
      const std::vector<Spot> spots = paths_.find(item).spots;
      for (const Spot& spot : spots) add(label, spot);
      if (spots.empty()) miss(label, "no device of this path is known");
      return;
    }
    std::string self = std::string(name) + '=' + item;
    const auto spot = of_item(kind, item, self);
    if (!add(label, spot, self)) miss(label, is_like_a_range(item) ? kNoRange : Paths::why_unknown(kind));
  }

  void add_cdi(std::string_view full) {
    // Once, too, because a spec's variable may name the device that sets it.
    once(full, [&] {
      // The specs are files of this machine, but name devices as every machine does.
      const CdiDevices& known = names_.inventory().cdi.devices;
      const auto device = known.find(full);
      if (device == known.end()) {
        const std::vector<std::string>& faults = names_.inventory().cdi.faults;
        add_cdi_name(full, "no CDI spec has it" + (faults.empty() ? "" : "; " + faults.front()));
      } else {
        add_cdi_device(full, device->second);
      }
    });
  }

  void add_cdi_device(std::string_view full, const CdiDevice& device) {
    const Told before = told_;
    const auto is_display = [](const std::string& path) { return path.starts_with("/dev/dri/"); };
    for (const std::string& path : device.paths) {
      if (!is_display(path)) add_path(path);
    }
    // Beside /dev/nvidiaN these are the same GPU once more, by numbers that say less without the machine's files.
    const bool is_nvidia_gpu = std::any_of(device.paths.begin(), device.paths.end(), is_nvidia_node);
    const bool are_new = !is_nvidia_gpu || told_.found == before.found;
    for (const std::string& path : device.paths) {
      if (is_display(path) && are_new) add_path(path);
    }
    for (const auto& [name, value] : device.env) add_env(name, value);
    const bool has_told = told_.found + told_.missed > before.found + before.missed;
    if (!has_told) add_cdi_name(full, "no device node of its CDI spec has a known place");
    // NVIDIA's specs set NVIDIA_VISIBLE_DEVICES=void, so that a container has these devices and no others.
    for (const auto& [name, value] : device.env) {
      if (told_.found > before.found) replaced_.insert(name);
    }
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
      if (name == "all") return add_nvidia_item(full, name);
      std::string ignored;
      if (add_nvidia_device(full, name, ignored)) return;
    }
    if (add(full, names_.at(pci_address(name).value_or(""))) || add(full, names_.named(name))) return;
    miss(full, why);
  }

  const TopologyNames& names_;
  const std::vector<Kind>& kinds_;
  const NvidiaGpus nvidia_;
  const Paths paths_;
  Sought sought_;
  std::set<std::string, std::less<>> selves_;
  Told told_;  ///< so far, repeated ones included
  std::map<std::string, Told, std::less<>> told_of_;
  std::set<std::string, std::less<>> replaced_;  ///< variables that CDI sets anew
  bool is_cut_ = false;
};

}  // namespace

Sought devices_of(const topolet_workload& workload, const TopologyNames& names, const std::vector<Kind>& kinds) {
  return Search(names, kinds).take(workload);
}

}  // namespace topolet::gpu
