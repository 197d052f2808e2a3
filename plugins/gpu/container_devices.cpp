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

/// The items of a variable. The SR-IOV device plugin describes the devices of PCIDEVICE_X in JSON in PCIDEVICE_X_INFO:
/// of JSON, these are the PCI addresses.
std::vector<std::string> listed_items(std::string_view value) {
  if (!trimmed(value).starts_with('{')) return split(value, ',');
  std::vector<std::string> addresses;
  std::set<std::string> known;
  for (const std::string& text : split(value, '"')) {
    if (parse_pci_address(text) && known.insert(text).second) addresses.push_back(text);
  }
  return addresses;
}

/// A device's name in reasons. Values of variables and annotations are secrets: an item of one is called by its
/// position and, once it is found, by the name that the machine has for it.
struct Label {
  std::string text;
  bool hides_a_value = false;
};

/// Labels a path or a CDI name in the request, which is not a secret.
Label label_of_name(std::string_view name) { return {.text = std::string(name)}; }

Label label_of_item(std::size_t position, std::size_t count, const std::string& variable) {
  return {count == 1 ? variable : "item " + std::to_string(position + 1) + " of " + variable, true};
}

/// Labels a number in a range.
Label label_in_range(std::size_t position, std::size_t count, const Label& range_label) {
  return count == 1 ? range_label : Label{"device " + std::to_string(position + 1) + " of " + range_label.text, true};
}

class DeviceFinder {
 public:
  DeviceFinder(const DeviceCatalog& catalog, const std::vector<DeviceKind>& kinds)
      : catalog_(catalog), kinds_(kinds), nvidia_(catalog), resolver_(catalog, kinds) {}

  ContainerDevices find_all(const topolet_workload& workload) {
    for (std::size_t i = 0; i < workload.devices.count; ++i) add_path(sdk::text(workload.devices.items[i]));
    for (std::size_t i = 0; i < workload.cdi_devices.count; ++i)
      add_requested_cdi(sdk::text(workload.cdi_devices.items[i]));
    for (std::size_t i = 0; i < workload.annotations.count; ++i) {
      const topolet_kv& annotation = workload.annotations.items[i];
      if (!sdk::text(annotation.key).starts_with(kCdiAnnotation)) continue;
      add_annotated_cdi(std::string(sdk::text(annotation.key)), sdk::text(annotation.value));
    }
    // If a variable is set twice, the last value counts.
    std::map<std::string_view, std::size_t> last;
    for (std::size_t i = 0; i < workload.env.count; ++i) last[sdk::text(workload.env.items[i].key)] = i;
    for (std::size_t i = 0; i < workload.env.count; ++i) {
      const std::string_view name = sdk::text(workload.env.items[i].key);
      if (last.at(name) == i && !overridden_variables_.contains(name))
        add_env(name, sdk::text(workload.env.items[i].value), std::string(name));
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

  bool add(const Label& label, const std::optional<DeviceRef>& ref) { return add(label, ref, label.text); }

  /// `identity`: what distinguishes the device from others of which only the node is known.
  bool add(const Label& label, const std::optional<DeviceRef>& ref, std::string_view identity) {
    if (!ref) return false;
    ++tally_.resolved;
    const bool has_own_identity = !catalog_.name_of(*ref).empty();
    const bool is_known = has_own_identity ? std::any_of(found_.devices.begin(), found_.devices.end(),
                                                         [&ref](const Device& device) { return device.ref == *ref; })
                                           : !identities_.emplace(identity).second;
    if (is_known) return true;
    const std::string_view own_name = label.hides_a_value ? catalog_.name_of(*ref) : std::string_view();
    const std::string prefix = own_name.empty() ? "" : printable(own_name) + " of ";
    found_.devices.push_back({prefix + printable(label.text), *ref});
    return true;
  }

  void add_every(const Label& label, const std::vector<DeviceRef>& refs) {
    for (const DeviceRef& ref : refs) {
      add(label, ref);
      for (Device& device : found_.devices) {
        if (device.ref == ref) device.is_one_of_all = refs.size() > 1;
      }
    }
  }

  void add_unresolved(const Label& label, const std::string& why) {
    ++tally_.unresolved;
    std::string text = printable(label.text) + ": " + why;
    const bool is_listed =
        std::find(found_.unresolved.begin(), found_.unresolved.end(), text) != found_.unresolved.end();
    if (!is_listed) found_.unresolved.push_back(std::move(text));
  }

  void add_path(std::string_view path) {
    look_up_once(path, [&] {
      const ResolvedPath resolved = resolver_.resolve(path);
      for (const DeviceRef& ref : resolved.refs) add(label_of_name(path), ref);
      if (resolved.refs.empty() && !resolved.problem.empty()) add_unresolved(label_of_name(path), resolved.problem);
    });
  }

  /// `shown`: what reasons call the variable.
  void add_env(std::string_view name, std::string_view value, const std::string& shown) {
    if (name == kNvidiaVariable) return add_nvidia_items(value, shown);
    for (const DeviceKind& kind : kinds_) {
      if (!kind.env.empty() && match_pattern(kind.env, name)) add_items(kind, name, value, shown);
    }
  }

  void add_nvidia_items(std::string_view value, const std::string& shown) {
    const std::vector<std::string> items = split(value, ',');
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string& item = items[i];
      if (names_no_device(item)) continue;
      const Label label = label_of_item(i, items.size(), shown);
      if (item.find('=') != std::string::npos) {
        add_cdi(label, item);
      } else {
        look_up_once(std::string(kNvidiaVariable) + '=' + item, [&] { add_nvidia_item(label, item); });
      }
    }
  }

  void add_nvidia_item(const Label& label, std::string_view item) {
    if (item == "all") {
      const std::vector<DeviceRef> all = nvidia_.all();
      add_every(label, all);
      if (all.empty()) add_unresolved(label, "no NVIDIA GPU was found");
      return;
    }
    std::string why;
    if (!add_nvidia_device(label, item, why)) add_unresolved(label, why);
  }

  /// Kinds of the option `devices` for certain items override what the plugin knows; those for all items are its last
  /// resort.
  bool add_nvidia_device(const Label& label, std::string_view item, std::string& why) {
    if (add_configured(label, item, true, why)) return true;
    std::string own_reason;
    if (add(label, nvidia_.by_item(item, own_reason)) || add_configured(label, item, false, why)) return true;
    if (why.empty()) why = own_reason;
    return false;
  }

  bool add_configured(const Label& label, std::string_view item, bool named_item_only, std::string& why) {
    for (const DeviceKind& kind : kinds_) {
      if (kind.env.empty() || !match_pattern(kind.env, kNvidiaVariable) || kind.item.empty() == named_item_only)
        continue;
      if (!applies_to(kind, item)) continue;
      std::string identity = std::string(kNvidiaVariable) + '=' + std::string(item);
      const auto ref = device_of_item(kind, item, identity);
      if (add(label, ref, identity)) return true;
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
  void add_items(const DeviceKind& kind, std::string_view name, std::string_view value, const std::string& shown) {
    const std::string prefix = kind.name + ' ' + std::string(name) + '=';
    const std::vector<std::string> items = listed_items(value);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string& item = items[i];
      if (names_no_device(item)) continue;
      look_up_once(prefix + item, [&] {
        const Label label = label_of_item(i, items.size(), shown);
        const std::vector<std::string> numbers = range(item);
        for (std::size_t n = 0; n < numbers.size(); ++n) {
          look_up_once(prefix + numbers[n],
                       [&] { add_item(kind, name, numbers[n], label_in_range(n, numbers.size(), label)); });
        }
        if (item == "all") {
          add_all(kind, label);
        } else if (numbers.empty()) {
          add_item(kind, name, item, label);
        }
      });
    }
  }

  void add_all(const DeviceKind& kind, const Label& label) {
    const std::vector<DeviceRef> all = resolver_.all_of_kind(kind);
    add_every(label, all);
    if (all.empty()) add_unresolved(label, "no device of this kind was found");
  }

  void add_item(const DeviceKind& kind, std::string_view name, const std::string& item, const Label& label) {
    if (!applies_to(kind, item)) return;
    const std::string address = parse_pci_address(item).value_or("");
    if (add(label, catalog_.by_address(address))) return;
    if (const std::string why = catalog_.why_not_located(address); !why.empty()) return add_unresolved(label, why);
    if (item.front() == '/') {
      const std::vector<DeviceRef> refs = resolver_.resolve(item).refs;
      for (const DeviceRef& ref : refs) add(label, ref, item);
      if (refs.empty()) add_unresolved(label, "no device was found at this path");
      return;
    }
    std::string identity = std::string(name) + '=' + item;
    const auto ref = device_of_item(kind, item, identity);
    if (!add(label, ref, identity))
      add_unresolved(label, looks_like_range(item) ? kNotARange : PathResolver::why_unresolved(kind));
  }

  void add_requested_cdi(std::string_view cdi_name) { add_cdi(label_of_name(cdi_name), cdi_name); }

  /// Whatever stands in an annotation is quoted only if it names a device.
  void add_annotated_cdi(const std::string& key, std::string_view value) {
    const std::vector<std::string> names = split(value, ',');
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool is_known = catalog_.inventory().cdi.devices.contains(names[i]);
      add_cdi(is_known ? label_of_name(names[i]) : label_of_item(i, names.size(), "annotation " + key), names[i]);
    }
  }

  void add_cdi(const Label& label, std::string_view cdi_name) {
    // Looking it up once also ends the recursion where a spec sets a variable that names the same device.
    look_up_once(cdi_name, [&] {
      // Although the specs are files of this machine, they are used for any: they name devices as every machine does.
      const CdiDevices& known = catalog_.inventory().cdi.devices;
      const auto device = known.find(cdi_name);
      if (device == known.end()) {
        const std::vector<std::string>& errors = catalog_.inventory().cdi.errors;
        add_cdi_by_name(label, cdi_name, "no CDI spec defines it" + (errors.empty() ? "" : "; " + errors.front()));
      } else {
        add_cdi_device(label, cdi_name, device->second);
      }
    });
  }

  void add_cdi_device(const Label& label, std::string_view cdi_name, const CdiDevice& device) {
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
    for (const auto& [name, value] : device.env) {
      add_env(name, value, name + " as set by " + printable(label.text));
    }
    const bool has_any = tally_.resolved + tally_.unresolved > before.resolved + before.unresolved;
    if (!has_any) add_cdi_by_name(label, cdi_name, "none of the device nodes in its CDI spec could be located");
    // NVIDIA's specs set NVIDIA_VISIBLE_DEVICES=void, so that the container gets these devices only.
    for (const auto& [name, value] : device.env) {
      if (tally_.resolved > before.resolved) overridden_variables_.insert(name);
    }
  }

  /// Without a usable spec the name itself may say which device it is: the names in NVIDIA's generated specs are made
  /// of index, UUID and type.
  void add_cdi_by_name(const Label& label, std::string_view cdi_name, const std::string& why) {
    const std::size_t equals = cdi_name.find('=');
    const std::string_view kind = cdi_name.substr(0, equals);
    std::string_view name = equals == std::string_view::npos ? std::string_view() : cdi_name.substr(equals + 1);
    if (is_nvidia_kind(kind)) {
      for (const std::string_view type : {"gpu", "mig"}) {
        if (name.starts_with(type)) name.remove_prefix(type.size());
      }
      if (name == "all") return add_nvidia_item(label, name);
      std::string ignored;
      if (add_nvidia_device(label, name, ignored)) return;
    }
    if (add(label, catalog_.by_address(parse_pci_address(name).value_or(""))) || add(label, catalog_.by_name(name)))
      return;
    add_unresolved(label, why);
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
