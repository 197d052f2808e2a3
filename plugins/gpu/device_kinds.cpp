#include "plugins/gpu/device_kinds.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "plugins/gpu/pci_ids.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

[[noreturn]] void fail(const std::string& kind, const std::string& why) {
  throw std::invalid_argument("option devices: " + printable(kind) + ": " + why);
}

std::uint32_t parse_hex(const DeviceKind& kind, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || text.size() > 4 || error != std::errc() || end != text.data() + text.size()) {
    fail(kind.name, "'" + printable(text) + "' is not a PCI ID of one to four hexadecimal digits");
  }
  return value;
}

PciMatch parse_pci_match(const DeviceKind& kind, std::string_view text) {
  PciMatch pci_match;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    pci_match.class_digits = to_lower(text.substr(slash + 1));
    parse_hex(kind, pci_match.class_digits);
    text = text.substr(0, slash);
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    pci_match.device_id = parse_hex(kind, text.substr(colon + 1));
    text = text.substr(0, colon);
  }
  pci_match.vendor_id = parse_hex(kind, text);
  return pci_match;
}

void parse_locate_by(DeviceKind& kind, std::string_view how) {
  const std::string_view method = how.substr(0, how.find(':'));
  const std::string_view argument = how.size() > method.size() ? how.substr(method.size() + 1) : std::string_view();
  if (how == "sysfs") {
    kind.locate_by = LocateBy::kSysfs;
  } else if (how == "item") {
    kind.locate_by = LocateBy::kItem;
  } else if (method == "link" && !argument.empty()) {
    kind.locate_by = LocateBy::kLink;
    kind.link = argument;
  } else if (method == "function") {
    kind.locate_by = LocateBy::kFunction;
    kind.pci_match = parse_pci_match(kind, argument);
  } else if (method == "address" && parse_pci_address(argument)) {
    kind.locate_by = LocateBy::kAddress;
    kind.address = *parse_pci_address(argument);
  } else if (method == "node" && parse_number(argument)) {
    kind.locate_by = LocateBy::kNode;
    kind.node = *parse_number(argument);
  } else {
    fail(kind.name, "pci=" + printable(how) +
                        " must be one of sysfs, link:PATTERN, function:VENDOR[:DEVICE][/CLASS], item, "
                        "address:DOMAIN:BUS:DEVICE.FUNCTION or node:INDEX");
  }
}

void check_link(const DeviceKind& kind, bool stars_agree) {
  if (kind.path.empty()) fail(kind.name, "pci=link requires path=");
  if (kind.link.front() == '/')
    fail(kind.name, "write the path after pci=link: relative to /sys, such as class/vacc/vacc*");
  if (!stars_agree)
    fail(kind.name, "use a '*' for what differs from device to device in both path= and pci=link:, or in neither");
}

/// The variable is compared item by item, and the items "none" and "void" mean no device.
void check_item(const DeviceKind& kind) {
  const bool is_none = kind.item == "none" || kind.item == "void";
  if (is_none || kind.item.find_first_of(",=") != std::string::npos) {
    fail(kind.name, "env=" + kind.env + '=' + printable(kind.item) +
                        " never matches: write one item of the variable's list, such as MIG-5c8e6b46-*");
  }
  if (kind.env == "NVIDIA_VISIBLE_DEVICES" && kind.locate_by == LocateBy::kItem) {
    fail(kind.name,
         "pci=item has no effect with env=NVIDIA_VISIBLE_DEVICES, which is understood without it; remove this kind");
  }
}

void check(const DeviceKind& kind) {
  const auto stars = [](const std::string& text) { return std::count(text.begin(), text.end(), '*'); };
  if (kind.path.empty() && kind.env.empty()) fail(kind.name, "give path= or env=, or both");
  if (!kind.path.empty() && kind.path.front() != '/') fail(kind.name, "path= must begin with '/', such as /dev/vacc*");
  if (std::filesystem::path(kind.path).lexically_normal().string() != kind.path || kind.path.ends_with('/')) {
    fail(kind.name, "path=" + printable(kind.path) +
                        " never matches: write the path without '//', '.', '..' and a '/' at the end");
  }
  if (stars(kind.item) > 1 || stars(kind.path) > 1 || stars(kind.env) > 1 || stars(kind.link) > 1) {
    fail(kind.name, "a pattern may contain only one '*'");
  }
  if (kind.env == "*") fail(kind.name, "env=* would match every variable; write a part of the name, too");
  check_item(kind);
  const bool counts_functions = kind.locate_by == LocateBy::kFunction;
  if (counts_functions && stars(kind.path) != 1)
    fail(kind.name, "pci=function requires path= with a '*' for the number of the device");
  if (kind.locate_by == LocateBy::kLink) check_link(kind, stars(kind.path) == stars(kind.link));
  if (kind.locate_by == LocateBy::kItem && kind.env.empty()) fail(kind.name, "pci=item requires env=");
  if (kind.locate_by == LocateBy::kSysfs && kind.path.empty()) fail(kind.name, "pci=sysfs requires path=");
}

DeviceKind parse_device_kind(const std::string& text) {
  const std::size_t colon = text.find(':');
  DeviceKind kind;
  kind.name = trimmed(std::string_view(text).substr(0, colon));
  if (colon == std::string::npos || kind.name.empty() || kind.name.find_first_of(" =") != std::string::npos) {
    fail(text, "write it as NAME: path=PATTERN env=VARIABLE pci=HOW");
  }
  kind.is_configured = true;
  std::string how;
  std::set<std::string> keys;
  for (const std::string& setting : split(std::string_view(text).substr(colon + 1), ' ')) {
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    std::string* const field = key == "path" ? &kind.path : key == "env" ? &kind.env : key == "pci" ? &how : nullptr;
    if (field == nullptr || equals == std::string::npos || equals + 1 == setting.size()) {
      fail(kind.name, "'" + printable(setting) + "' must be one of path=PATTERN, env=VARIABLE or pci=HOW");
    }
    if (!keys.insert(key).second) fail(kind.name, key + "= is given twice");
    *field = setting.substr(equals + 1);
  }
  if (const std::size_t equals = kind.env.find('='); equals != std::string::npos) {
    kind.item = kind.env.substr(equals + 1);
    kind.env.resize(equals);
    if (kind.env.empty() || kind.item.empty()) fail(kind.name, "env= must be followed by VARIABLE or VARIABLE=ITEM");
  }
  parse_locate_by(kind, how.empty() ? (kind.path.empty() ? "item" : "sysfs") : how);
  check(kind);
  return kind;
}

}  // namespace

std::vector<DeviceKind> parse_device_kinds(std::string_view devices) {
  std::vector<DeviceKind> kinds;
  const auto has = [&kinds](const std::string& name) {
    return std::any_of(kinds.begin(), kinds.end(), [&name](const DeviceKind& kind) { return kind.name == name; });
  };
  for (const std::string& text : split(devices, ';')) {
    DeviceKind kind = parse_device_kind(text);
    if (has(kind.name)) fail(kind.name, "two kinds have this name");
    kinds.push_back(std::move(kind));
  }
  const std::vector<DeviceKind> built_in = {
      {.name = "ascend",
       .path = "/dev/davinci*",
       .env = "ASCEND_VISIBLE_DEVICES",
       .locate_by = LocateBy::kFunction,
       .pci_match = {.vendor_id = kHuaweiVendor, .class_digits = "12"}},
      {.name = "vacc", .path = "/dev/vacc*", .env = "VA_VISIBLE_DEVICES"},
      {.name = "vf", .path = "", .env = "PCIDEVICE_*", .locate_by = LocateBy::kItem},
  };
  for (const DeviceKind& kind : built_in) {
    if (!has(kind.name)) kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace topolet::gpu
