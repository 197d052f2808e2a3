#include "plugins/gpu/cdi.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plugins/gpu/text.hpp"
#include "plugins/gpu/yaml.hpp"

namespace topolet::gpu {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* name) {
  static const json kNone;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNone;
}

/// YAML has no quotes around most strings, and some generators none around numbers in JSON.
std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : std::string();
}

void add_edits(const json& edits, CdiDevice& device) {
  const json& nodes = member(edits, "deviceNodes");
  for (const json& node : nodes.is_array() ? nodes : json::array()) {
    const std::string on_host = text_of(member(node, "hostPath"));
    std::string path = on_host.empty() ? text_of(member(node, "path")) : on_host;
    if (!path.empty()) device.paths.push_back(std::move(path));
  }
  const json& env = member(edits, "env");
  for (const json& entry : env.is_array() ? env : json::array()) {
    const std::string text = text_of(entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) device.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

}  // namespace

CdiDevices read_cdi_spec(std::string_view text) {
  json spec = json::parse(text, nullptr, false);
  if (spec.is_discarded()) {
    const std::string_view begin = trimmed(text);
    if (!begin.empty() && begin.front() == '{') throw std::invalid_argument("it is not JSON, though it begins like it");
    spec = read_yaml(text);
  }
  const std::string kind = text_of(member(spec, "kind"));
  const json& listed = member(spec, "devices");
  if (kind.find('/') == std::string::npos || !listed.is_array()) {
    throw std::invalid_argument("it has no kind such as vendor.com/class, or no list of devices");
  }
  CdiDevices devices;
  for (const json& entry : listed) {
    const std::string name = text_of(member(entry, "name"));
    if (name.empty()) throw std::invalid_argument("a device without a name");
    CdiDevice& device = devices[kind + '=' + name];
    add_edits(member(entry, "containerEdits"), device);
    add_edits(member(spec, "containerEdits"), device);
  }
  return devices;
}

}  // namespace topolet::gpu
