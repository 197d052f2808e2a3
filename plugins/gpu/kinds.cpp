#include "plugins/gpu/kinds.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

[[noreturn]] void refuse(const std::string& kind, const std::string& why) {
  throw std::invalid_argument("option devices: " + shown(kind) + ": " + why);
}

std::uint32_t hex(const Kind& kind, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || text.size() > 4 || error != std::errc() || end != text.data() + text.size()) {
    refuse(kind.name, "'" + shown(text) + "' is no PCI id of up to four hexadecimal digits");
  }
  return value;
}

Make make_of(const Kind& kind, std::string_view text) {
  Make make;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    make.class_digits = lower(text.substr(slash + 1));
    hex(kind, make.class_digits);
    text = text.substr(0, slash);
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    make.device_id = hex(kind, text.substr(colon + 1));
    text = text.substr(0, colon);
  }
  make.vendor_id = hex(kind, text);
  return make;
}

void read_finding(Kind& kind, std::string_view how) {
  const std::string_view word = how.substr(0, how.find(':'));
  const std::string_view rest = how.size() > word.size() ? how.substr(word.size() + 1) : std::string_view();
  if (how == "sysfs") {
    kind.finding = Finding::kSystem;
  } else if (how == "item") {
    kind.finding = Finding::kItem;
  } else if (word == "link" && !rest.empty()) {
    kind.finding = Finding::kLink;
    kind.link = rest;
  } else if (word == "function") {
    kind.finding = Finding::kFunction;
    kind.make = make_of(kind, rest);
  } else if (word == "address" && pci_address(rest)) {
    kind.finding = Finding::kAddress;
    kind.address = *pci_address(rest);
  } else if (word == "node" && number(rest)) {
    kind.finding = Finding::kNode;
    kind.node = *number(rest);
  } else {
    refuse(kind.name, "pci=" + shown(how) +
                          " is none of sysfs, link:PATTERN, function:VENDOR[:DEVICE][/CLASS], item, "
                          "address:DOMAIN:BUS:DEVICE.FUNCTION and node:INDEX");
  }
}

void check_link(const Kind& kind, bool is_alike) {
  if (kind.path.empty()) refuse(kind.name, "pci=link needs path=");
  if (kind.link.front() == '/')
    refuse(kind.name, "pci=link: is followed by a path below /sys, such as class/vacc/vacc*");
  if (!is_alike) refuse(kind.name, "path= and pci=link: both need a '*' for what tells devices apart, or neither");
}

/// A runtime gives items one by one, and "none" and "void" mean that there is no device.
void check_item(const Kind& kind) {
  const bool is_none = kind.item == "none" || kind.item == "void";
  if (is_none || kind.item.find_first_of(",=") != std::string::npos) {
    refuse(kind.name, "env=" + kind.env + '=' + shown(kind.item) +
                          " has no effect: after the variable stands one item of its list, such as MIG-5c8e6b46-*");
  }
  if (kind.env == "NVIDIA_VISIBLE_DEVICES" && kind.finding == Finding::kItem) {
    refuse(kind.name, "pci=item has no effect with env=NVIDIA_VISIBLE_DEVICES, where PCI addresses are known anyway");
  }
}

void check(const Kind& kind) {
  const auto stars = [](const std::string& text) { return std::count(text.begin(), text.end(), '*'); };
  if (kind.path.empty() && kind.env.empty()) refuse(kind.name, "it needs path= or env=, or both");
  if (!kind.path.empty() && kind.path.front() != '/') refuse(kind.name, "path= begins with '/', such as /dev/vacc*");
  if (std::filesystem::path(kind.path).lexically_normal().string() != kind.path || kind.path.ends_with('/')) {
    refuse(kind.name, "path=" + shown(kind.path) +
                          " has no effect: paths are compared without '//', '.', '..' and an "
                          "ending '/'");
  }
  if (stars(kind.item) > 1 || stars(kind.path) > 1 || stars(kind.env) > 1 || stars(kind.link) > 1) {
    refuse(kind.name, "a pattern has one '*' at most");
  }
  if (kind.env == "*") refuse(kind.name, "env= needs more than a '*', or it would take every variable");
  check_item(kind);
  const bool counts = kind.finding == Finding::kFunction;
  if (counts && stars(kind.path) != 1) refuse(kind.name, "path= needs a '*' for what tells its devices apart");
  if (kind.finding == Finding::kLink) check_link(kind, stars(kind.path) == stars(kind.link));
  if (kind.finding == Finding::kItem && kind.env.empty()) refuse(kind.name, "pci=item needs env=");
  if (kind.finding == Finding::kSystem && kind.path.empty()) refuse(kind.name, "pci=sysfs needs path=");
}

Kind read_kind(const std::string& text) {
  const std::size_t colon = text.find(':');
  Kind kind;
  kind.name = trimmed(std::string_view(text).substr(0, colon));
  if (colon == std::string::npos || kind.name.empty() || kind.name.find_first_of(" =") != std::string::npos) {
    refuse(text, "it should read NAME: path=PATTERN env=VARIABLE pci=HOW");
  }
  kind.is_configured = true;
  std::string how;
  std::set<std::string> keys;
  for (const std::string& word : split(std::string_view(text).substr(colon + 1), ' ')) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    std::string* const field = key == "path" ? &kind.path : key == "env" ? &kind.env : key == "pci" ? &how : nullptr;
    if (field == nullptr || equals == std::string::npos || equals + 1 == word.size()) {
      refuse(kind.name, "'" + shown(word) + "' is none of path=PATTERN, env=VARIABLE and pci=HOW");
    }
    if (!keys.insert(key).second) refuse(kind.name, key + "= is there twice");
    *field = word.substr(equals + 1);
  }
  if (const std::size_t equals = kind.env.find('='); equals != std::string::npos) {
    kind.item = kind.env.substr(equals + 1);
    kind.env.resize(equals);
    if (kind.env.empty() || kind.item.empty()) refuse(kind.name, "env= takes VARIABLE or VARIABLE=ITEM");
  }
  read_finding(kind, how.empty() ? (kind.path.empty() ? "item" : "sysfs") : how);
  check(kind);
  return kind;
}

}  // namespace

std::vector<Kind> read_kinds(std::string_view devices) {
  std::vector<Kind> kinds;
  const auto has = [&kinds](const std::string& name) {
    return std::any_of(kinds.begin(), kinds.end(), [&name](const Kind& kind) { return kind.name == name; });
  };
  for (const std::string& text : split(devices, ';')) {
    Kind kind = read_kind(text);
    if (has(kind.name)) refuse(kind.name, "there are two kinds of this name");
    kinds.push_back(std::move(kind));
  }
  constexpr std::uint32_t kHuawei = 0x19e5;
  const std::vector<Kind> ours = {
      {.name = "ascend",
       .path = "/dev/davinci*",
       .env = "ASCEND_VISIBLE_DEVICES",
       .finding = Finding::kFunction,
       .make = {.vendor_id = kHuawei, .class_digits = "12"}},
      {.name = "vacc", .path = "/dev/vacc*", .env = "VA_VISIBLE_DEVICES"},
  };
  for (const Kind& kind : ours) {
    if (!has(kind.name)) kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace topolet::gpu
