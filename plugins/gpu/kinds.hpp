// Kinds of devices: how a container names one, and where its PCI address is found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::gpu {

/// How a device of a kind is found.
enum class Finding : std::uint8_t {
  kSystem,    ///< by its node in /dev, through /sys/dev
  kLink,      ///< behind a path below /sys
  kFunction,  ///< its number counts the PCI functions of a make, by address
  kItem,      ///< the environment variable names the PCI address
  kAddress,   ///< one device, whose address is given
  kNode,      ///< no PCI device, but near to a given NUMA node
};

/// A make of PCI functions.
struct Make {
  std::uint32_t vendor_id = 0;
  std::optional<std::uint32_t> device_id = {};
  std::string class_digits = {};  ///< the first hexadecimal digits of class and subclass
};

struct Kind {
  std::string name;
  std::string path;       ///< of the device node, '*' for its number or name; may be empty
  std::string env;        ///< names a variable that lists devices; may have a '*', may be empty
  std::string item = {};  ///< which parts of the variable's value it is for, may have a '*'; empty: all
  Finding finding = Finding::kSystem;
  std::string link = {};  ///< below /sys, '*' as in `path`
  Make make = {};
  std::string address = {};
  std::uint32_t node = 0;
  bool is_configured = false;  ///< by the option `devices`
};

/// The kinds of the option `devices` and, after them, ours that none of these has the name of. Syntax:
///   NAME: path=PATTERN env=VARIABLE[=ITEM] pci=HOW; NAME: …
/// HOW is one of sysfs, link:PATTERN, function:VENDOR[:DEVICE][/CLASS], item, address:ADDRESS, node:INDEX; left out it
/// is sysfs with a path and item without. Throws std::invalid_argument in words.
std::vector<Kind> read_kinds(std::string_view devices);

}  // namespace topolet::gpu
