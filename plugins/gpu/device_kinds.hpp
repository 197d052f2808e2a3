// Kinds of devices: how a container names one, and how its hardware is located.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::gpu {

/// How a device of a kind is located. The option `devices` calls these sysfs, link, function, item, address and node.
enum class LocateBy : std::uint8_t {
  kSysfs,     ///< through /sys/dev, by its device node
  kLink,      ///< through a link below /sys
  kFunction,  ///< by its number, which counts matching PCI functions in the order of their addresses
  kItem,      ///< by the PCI address that the environment variable holds
  kAddress,   ///< one device at a given PCI address
  kNode,      ///< no PCI device, but near a given NUMA node
};

/// The PCI functions to count.
struct PciMatch {
  std::uint32_t vendor_id = 0;
  std::optional<std::uint32_t> device_id = {};
  std::string class_digits = {};  ///< the first hexadecimal digits of class and subclass
};

struct DeviceKind {
  std::string name;
  std::string path;       ///< pattern of the device node, '*' for its number or name; may be empty
  std::string env;        ///< pattern of the variable that lists devices; may be empty
  std::string item = {};  ///< pattern of the items in the variable that the kind is for; empty for all
  LocateBy locate_by = LocateBy::kSysfs;
  std::string link = {};  ///< pattern below /sys, '*' as in `path`
  PciMatch pci_match = {};
  std::string address = {};
  std::uint32_t node = 0;
  bool is_configured = false;  ///< by the option `devices`
};

/// The kinds of the option `devices`, followed by the built-in ones whose names it does not use. Syntax:
///   NAME: path=PATTERN env=VARIABLE[=ITEM] pci=HOW; NAME: …
/// HOW is one of sysfs, link:PATTERN, function:VENDOR[:DEVICE][/CLASS], item, address:ADDRESS, node:INDEX. It defaults
/// to sysfs with a path and to item without one. Throws std::invalid_argument with the kind and the reason.
std::vector<DeviceKind> parse_device_kinds(std::string_view devices);

}  // namespace topolet::gpu
