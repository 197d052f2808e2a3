#include "plugins/gpu/cdi.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plugins/gpu/text.hpp"
#include "plugins/gpu/yaml.hpp"

namespace topolet::gpu {
namespace {

using nlohmann::json;

/// Of one spec. A real one has some hundreds.
constexpr std::size_t kMostEdits = std::size_t{1} << 17;
constexpr int kDeepest = 64;

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

const json& items_of(const json& object, const char* name) {
  static const json kEmpty = json::array();
  const json& found = member(object, name);
  return found.is_array() ? found : kEmpty;
}

void add_edits(const json& edits, CdiDevice& device) {
  for (const json& node : items_of(edits, "deviceNodes")) {
    const std::string on_host = text_of(member(node, "hostPath"));
    std::string path = on_host.empty() ? text_of(member(node, "path")) : on_host;
    if (!path.empty()) device.paths.push_back(std::move(path));
  }
  for (const json& entry : items_of(edits, "env")) {
    const std::string text = text_of(entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) device.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

/// The library's own way to see the depth, a callback, takes quadratic time for long lists.
bool is_deep_json(std::string_view text) {
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_quoted = !is_quoted;
    if (is_quoted) {
      i += letter == '\\' ? 1 : 0;
      continue;
    }
    if ((letter == '[' || letter == '{') && ++depth > kDeepest) return true;
    if (letter == ']' || letter == '}') --depth;
  }
  return false;
}

json parsed(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string_view begin = trimmed(text);
  if (begin.empty() || begin.front() != '{') return read_yaml(text);
  if (is_deep_json(begin)) throw std::invalid_argument("it is nested too deeply");
  json spec = json::parse(begin, nullptr, false);
  if (!spec.is_discarded()) return spec;
  try {
    return read_yaml(text);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument("it is not JSON, though it begins like it");
  }
}

}  // namespace

CdiDevices read_cdi_spec(std::string_view text) {
  const json spec = parsed(text);
  const std::string kind = text_of(member(spec, "kind"));
  const json& listed = member(spec, "devices");
  if (kind.find('/') == std::string::npos || !listed.is_array()) {
    throw std::invalid_argument("it has no kind such as vendor.com/class, or no list of devices");
  }
  CdiDevices devices;
  std::size_t edits = 0;
  for (const json& entry : listed) {
    const std::string name = text_of(member(entry, "name"));
    if (name.empty()) throw std::invalid_argument("a device without a name");
    const auto [position, is_new] = devices.try_emplace(kind + '=' + name);
    if (!is_new) throw std::invalid_argument("two devices of the name " + shown(name));
    CdiDevice& device = position->second;
    add_edits(member(entry, "containerEdits"), device);
    add_edits(member(spec, "containerEdits"), device);
    edits += 1 + device.paths.size() + device.env.size();
    if (edits > kMostEdits) throw std::invalid_argument("it has more devices, nodes and variables than are read here");
  }
  return devices;
}

}  // namespace topolet::gpu
