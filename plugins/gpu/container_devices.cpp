#include "plugins/gpu/container_devices.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plugins/gpu/path_resolver.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::string_view kNvidiaVariable = "NVIDIA_VISIBLE_DEVICES";
constexpr std::string_view kCdiAnnotation = "cdi.k8s.io/";

/// More than the devices of a node. Variables and annotations may be of any length, and a decision waits for the
/// lookup.
constexpr std::size_t kMaxNames = 1024;

bool names_no_device(std::string_view item) { return item == "none" || item == "void"; }

/// True for "nvidia.com/gpu", "runtime.nvidia.com/gpu" and the like.
bool is_nvidia_kind(std::string_view kind) { return kind.ends_with("nvidia.com/gpu"); }

/// True for "/dev/nvidia0", also below another root directory; false for "/dev/nvidiactl".
bool is_nvidia_node(std::string_view path) {
  const auto star = match_pattern("/dev/nvidia*", path.substr(std::min(path.size(), path.rfind("/dev/"))));
  return star && parse_number(*star);
}

/// The "3" of "3" and of "Ascend910-3".
std::string_view trailing_number(std::string_view item) {
  const std::size_t dash = item.rfind('-');
  const bool has_type = dash != std::string_view::npos && dash > 0 && !parse_number(item.substr(0, dash));
  return has_type && parse_number(item.substr(dash + 1)) ? item.substr(dash + 1) : item;
}

/// True for any range of numbers, including those that range() rejects: "5-2", and "0-2000000000".
bool looks_like_range(std::string_view item) {
  const std::size_t dash = std::min(item.find('-'), item.size());
  const auto is_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash < item.size() && is_digits(item.substr(0, dash)) && is_digits(item.substr(dash + 1));
}

constexpr const char* kNotARange = "not a valid range: it takes two numbers below 1024, the lower one first";

/// The numbers of a range such as "2-5"; none for other text.
std::vector<std::string> range(std::string_view item) {
  constexpr std::uint32_t kMaxCount = 1024;
  const std::size_t dash = std::min(item.find('-'), item.size());
  const std::uint32_t invalid = kMaxCount;
  const std::uint32_t first = parse_number(item.substr(0, dash)).value_or(invalid);
  const std::uint32_t last = dash < item.size() ? parse_number(item.substr(dash + 1)).value_or(invalid) : invalid;
  std::vector<std::string> numbers;
  for (std::uint32_t n = first; n <= last && last < kMaxCount; ++n) numbers.push_back(std::to_string(n));
  return numbers;
}

class DeviceFinder {
 public:
  DeviceFinder(const DeviceCatalog& catalog, const std::vector<DeviceKind>& kinds)
      : catalog_(catalog), kinds_(kinds), nvidia_(catalog), resolver_(catalog, kinds) {}

  ContainerDevices find_all(const topolet_workload& workload) {
    for (std::size_t i = 0; i < workload.devices.count; ++i) add_path(sdk::text(workload.devices.items[i]));
    for (std::size_t i = 0; i < workload.cdi_devices.count; ++i) add_cdi(sdk::text(workload.cdi_devices.items[i]));
    for (std::size_t i = 0; i < workload.annotations.count; ++i) {
      const topolet_kv& annotation = workload.annotations.items[i];
      if (!sdk::text(annotation.key).starts_with(kCdiAnnotation)) continue;
      for (const std::string& name : split(sdk::text(annotation.value), ',')) add_cdi(name);
    }
    // If a variable is set twice, the last value counts.
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < workload.env.count; ++i) last[sdk::text(workload.env.items[i].key)] = i;
    for (std::size_t i = 0; i < workload.env.count; ++i) {
      const std::string_view name = sdk::text(workload.env.items[i].key);
      if (last.at(name) == i && !overridden_variables_.contains(name))
        add_env(name, sdk::text(workload.env.items[i].value));
    }
    if (is_truncated_) {
      found_.unresolved.insert(found_.unresolved.begin(), "names after the first " + std::to_string(kMaxNames));
    }
    return std::move(found_);
  }

 private:
  /// How many names have led to a device, and how many have not.
  struct Tally {
    std::size_t resolved = 0;
    std::size_t unresolved = 0;
  };

  /// Looks a name up the first time only, and no new ones after kMaxNames. The tally counts each time.
  template <class Lookup>
  void look_up_once(std::string_view name, const Lookup& lookup) {
    if (const auto known = tally_of_.find(name); known != tally_of_.end()) {
      tally_.resolved += known->second.resolved;
      tally_.unresolved += known->second.unresolved;
      return;
    }
    is_truncated_ = is_truncated_ || tally_of_.size() == kMaxNames;
    if (is_truncated_) return;
    Tally& tally = tally_of_.emplace(name, Tally()).first->second;
    const Tally before = tally_;
    lookup();
    tally = {tally_.resolved - before.resolved, tally_.unresolved - before.unresolved};
  }

  bool add(std::string_view name, const std::optional<DeviceRef>& ref) { return add(name, ref, name); }

  /// `identity`: what distinguishes the device from others of which only the node is known.
  bool add(std::string_view name, const std::optional<DeviceRef>& ref, std::string_view identity) {
    if (!ref) return false;
    ++tally_.resolved;
    const bool has_own_identity = ref->pci_device != TOPOLET_NONE || ref->os_device != TOPOLET_NONE;
    const bool is_known = has_own_identity ? std::any_of(found_.devices.begin(), found_.devices.end(),
                                                         [&ref](const Device& device) { return device.ref == *ref; })
                                           : !identities_.emplace(identity).second;
    if (!is_known) found_.devices.push_back({printable(name), *ref});
    return true;
  }

  void add_unresolved(std::string_view name, const std::string& why) {
    ++tally_.unresolved;
    std::string text = printable(name) + ": " + why;
    const bool is_listed =
        std::find(found_.unresolved.begin(), found_.unresolved.end(), text) != found_.unresolved.end();
    if (!is_listed) found_.unresolved.push_back(std::move(text));
  }

  void add_path(std::string_view path) {
    look_up_once(path, [&] {
      const ResolvedPath resolved = resolver_.resolve(path);
      for (const DeviceRef& ref : resolved.refs) add(path, ref);
      if (resolved.refs.empty() && !resolved.problem.empty()) add_unresolved(path, resolved.problem);
    });
  }

  void add_env(std::string_view name, std::string_view value) {
    if (name == kNvidiaVariable) return add_nvidia_items(value);
    for (const DeviceKind& kind : kinds_) {
      if (!kind.env.empty() && match_pattern(kind.env, name)) add_items(kind, name, value);
    }
  }

  void add_nvidia_items(std::string_view value) {
    for (const std::string& item : split(value, ',')) {
      if (names_no_device(item)) continue;
      const std::string name = std::string(kNvidiaVariable) + '=' + item;
      if (item.find('=') != std::string::npos) {
        add_cdi(item);
      } else {
        look_up_once(name, [&] { add_nvidia_item(name, item); });
      }
    }
  }

  void add_nvidia_item(std::string_view name, std::string_view item) {
    if (item == "all") {
      const std::vector<DeviceRef> all = nvidia_.all();
      for (const DeviceRef& ref : all) add(name, ref);
      if (all.empty()) add_unresolved(name, "no NVIDIA GPU was found");
      return;
    }
    std::string why;
    if (!add_nvidia_device(name, item, why)) add_unresolved(name, why);
  }

  /// Kinds of the option `devices` for certain items override what the plugin knows; those for all items are its last
  /// resort.
  bool add_nvidia_device(std::string_view name, std::string_view item, std::string& why) {
    if (add_configured(name, item, true, why)) return true;
    std::string own_reason;
    if (add(name, nvidia_.by_item(item, own_reason)) || add_configured(name, item, false, why)) return true;
    if (why.empty()) why = own_reason;
    return false;
  }

  bool add_configured(std::string_view name, std::string_view item, bool named_item_only, std::string& why) {
    for (const DeviceKind& kind : kinds_) {
      if (kind.env.empty() || !match_pattern(kind.env, kNvidiaVariable) || kind.item.empty() == named_item_only)
        continue;
      if (!applies_to(kind, item)) continue;
      std::string identity = std::string(kNvidiaVariable) + '=' + std::string(item);
      const auto ref = device_of_item(kind, item, identity);
      if (add(name, ref, identity)) return true;
      if (named_item_only) why = PathResolver::why_unresolved(kind);
    }
    return false;
  }

  static bool applies_to(const DeviceKind& kind, std::string_view item) {
    return kind.item.empty() || match_pattern(kind.item, item);
  }

  /// Sets `identity` to the path of the device, if the kind has paths.
  std::optional<DeviceRef> device_of_item(const DeviceKind& kind, std::string_view item, std::string& identity) const {
    const auto star = match_pattern(kind.item, item).value_or("");
    const std::string_view number = star.empty() ? trailing_number(item) : star;
    if (kind.path.find('*') == std::string::npos) return resolver_.device_of_kind(kind, star.empty() ? item : star);
    identity = fill_pattern(kind.path, number);
    const ResolvedPath resolved = resolver_.resolve(identity);
    return resolved.refs.empty() ? std::nullopt : std::optional(resolved.refs.front());
  }

  /// `value`: a list of numbers, ranges, PCI addresses, device paths and "all".
  void add_items(const DeviceKind& kind, std::string_view name, std::string_view value) {
    const std::string prefix = kind.name + ' ' + std::string(name) + '=';
    // The SR-IOV device plugin describes the devices of PCIDEVICE_X in JSON in PCIDEVICE_X_INFO.
    const bool is_json = trimmed(value).starts_with('{');
    for (const std::string& item : split(value, is_json ? '"' : ',')) {
      if (is_json && !parse_pci_address(item)) continue;
      if (names_no_device(item)) continue;
      look_up_once(prefix + item, [&] {
        const std::vector<std::string> numbers = range(item);
        for (const std::string& n : numbers) look_up_once(prefix + n, [&] { add_item(kind, name, n); });
        if (item == "all") {
          add_all(kind, name);
        } else if (numbers.empty()) {
          add_item(kind, name, item);
        }
      });
    }
  }

  void add_all(const DeviceKind& kind, std::string_view name) {
    const std::vector<DeviceRef> all = resolver_.all_of_kind(kind);
    for (const DeviceRef& ref : all) add(name, ref);
    if (all.empty()) add_unresolved(std::string(name) + "=all", "no device of this kind was found");
  }

  void add_item(const DeviceKind& kind, std::string_view name, const std::string& item) {
    if (!applies_to(kind, item)) return;
    const auto address = parse_pci_address(item);
    // A pattern may also match variables that nobody had in mind, whose values must be treated as secrets.
    const bool is_safe_to_show = address || kind.env.find('*') == std::string::npos;
    const std::string label = is_safe_to_show ? std::string(name) + '=' + item : std::string(name);
    if (add(label, catalog_.by_address(address.value_or("")))) return;
    if (item.front() == '/') {
      const std::vector<DeviceRef> refs = resolver_.resolve(item).refs;
      for (const DeviceRef& ref : refs) add(label, ref);
      if (refs.empty()) add_unresolved(label, "no device was found at this path");
      return;
    }
    std::string identity = std::string(name) + '=' + item;
    const auto ref = device_of_item(kind, item, identity);
    if (!add(label, ref, identity))
      add_unresolved(label, looks_like_range(item) ? kNotARange : PathResolver::why_unresolved(kind));
  }

  void add_cdi(std::string_view cdi_name) {
    // Looking it up once also ends the recursion where a spec sets a variable that names the same device.
    look_up_once(cdi_name, [&] {
      // Although the specs are files of this machine, they are used for any: they name devices as every machine does.
      const CdiDevices& known = catalog_.inventory().cdi.devices;
      const auto device = known.find(cdi_name);
      if (device == known.end()) {
        const std::vector<std::string>& errors = catalog_.inventory().cdi.errors;
        add_cdi_by_name(cdi_name, "no CDI spec defines it" + (errors.empty() ? "" : "; " + errors.front()));
      } else {
        add_cdi_device(cdi_name, device->second);
      }
    });
  }

  void add_cdi_device(std::string_view cdi_name, const CdiDevice& device) {
    const Tally before = tally_;
    const auto is_display = [](const std::string& path) { return path.starts_with("/dev/dri/"); };
    for (const std::string& path : device.paths) {
      if (!is_display(path)) add_path(path);
    }
    // Next to /dev/nvidiaN a display node is the same GPU again, under a number that is less reliable without the
    // machine's files.
    const bool is_nvidia_gpu = std::any_of(device.paths.begin(), device.paths.end(), is_nvidia_node);
    const bool count_displays = !is_nvidia_gpu || tally_.resolved == before.resolved;
    for (const std::string& path : device.paths) {
      if (is_display(path) && count_displays) add_path(path);
    }
    for (const auto& [name, value] : device.env) add_env(name, value);
    const bool has_any = tally_.resolved + tally_.unresolved > before.resolved + before.unresolved;
    if (!has_any) add_cdi_by_name(cdi_name, "none of the device nodes in its CDI spec could be located");
    // NVIDIA's specs set NVIDIA_VISIBLE_DEVICES=void, so that the container gets these devices only.
    for (const auto& [name, value] : device.env) {
      if (tally_.resolved > before.resolved) overridden_variables_.insert(name);
    }
  }

  /// Without a usable spec the name itself may say which device it is: the names in NVIDIA's generated specs are made
  /// of index, UUID and type.
  void add_cdi_by_name(std::string_view cdi_name, const std::string& why) {
    const std::size_t equals = cdi_name.find('=');
    const std::string_view kind = cdi_name.substr(0, equals);
    std::string_view name = equals == std::string_view::npos ? std::string_view() : cdi_name.substr(equals + 1);
    if (is_nvidia_kind(kind)) {
      for (const std::string_view type : {"gpu", "mig"}) {
        if (name.starts_with(type)) name.remove_prefix(type.size());
      }
      if (name == "all") return add_nvidia_item(cdi_name, name);
      std::string ignored;
      if (add_nvidia_device(cdi_name, name, ignored)) return;
    }
    if (add(cdi_name, catalog_.by_address(parse_pci_address(name).value_or(""))) ||
        add(cdi_name, catalog_.by_name(name)))
      return;
    add_unresolved(cdi_name, why);
  }

  const DeviceCatalog& catalog_;
  const std::vector<DeviceKind>& kinds_;
  const NvidiaGpus nvidia_;
  const PathResolver resolver_;
  ContainerDevices found_;
  std::set<std::string, std::less<>> identities_;
  Tally tally_;
  std::map<std::string, Tally, std::less<>> tally_of_;
  std::set<std::string, std::less<>> overridden_variables_;  ///< that a CDI device sets itself
  bool is_truncated_ = false;
};

}  // namespace

ContainerDevices find_container_devices(const topolet_workload& workload, const DeviceCatalog& catalog,
                                        const std::vector<DeviceKind>& kinds) {
  return DeviceFinder(catalog, kinds).find_all(workload);
}

}  // namespace topolet::gpu
