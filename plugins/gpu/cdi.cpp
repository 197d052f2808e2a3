#include "plugins/gpu/cdi.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "plugins/gpu/text.hpp"
#include "plugins/gpu/yaml.hpp"

namespace topolet::gpu {
namespace {

using nlohmann::json;

/// Devices, device nodes and variables of one spec together. Real specs have some hundreds.
constexpr std::size_t kMaxEdits = std::size_t{1} << 17;
constexpr int kMaxJsonDepth = 64;

const json& member(const json& object, const char* name) {
  static const json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

/// Numbers count as text: some generators write them without quotes.
std::string text_or_empty(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : std::string();
}

const json& items_or_none(const json& object, const char* name) {
  static const json kEmpty = json::array();
  const json& found = member(object, name);
  return found.is_array() ? found : kEmpty;
}

void add_edits(const json& edits, CdiDevice& device) {
  for (const json& node : items_or_none(edits, "deviceNodes")) {
    const std::string on_host = text_or_empty(member(node, "hostPath"));
    std::string path = on_host.empty() ? text_or_empty(member(node, "path")) : on_host;
    if (!path.empty()) device.paths.push_back(std::move(path));
  }
  for (const json& entry : items_or_none(edits, "env")) {
    const std::string text = text_or_empty(entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) device.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

/// Returns the position at which brackets are nested too deeply. Checked before parsing: the callback by which
/// nlohmann::json reports the depth takes quadratic time for long lists.
std::optional<std::size_t> too_deep_at(std::string_view text) {
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_quoted = !is_quoted;
    if (is_quoted) {
      i += letter == '\\' ? 1 : 0;
      continue;
    }
    if ((letter == '[' || letter == '{') && ++depth > kMaxJsonDepth) return i;
    if (letter == ']' || letter == '}') --depth;
  }
  return std::nullopt;
}

/// "line 3: ", of the byte at an offset.
std::string line_text(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n')) + ": ";
}

json parse(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (!trimmed(text).starts_with('{')) return read_yaml(text);
  if (const auto offset = too_deep_at(text)) {
    throw std::invalid_argument(line_text(text, *offset) + "nested more than " + std::to_string(kMaxJsonDepth) +
                                " levels deep");
  }
  std::size_t error_offset = 0;
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    error_offset = error.byte - std::min<std::size_t>(error.byte, 1);  // counts from 1
  } catch (const json::out_of_range&) {
    return read_yaml(text);  // a number too large for JSON's types is text like any other
  }
  try {
    return read_yaml(text);  // YAML may begin with a brace, too
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(line_text(text, error_offset) + "not JSON, and not YAML either (" + error.what() + ')');
  }
}

}  // namespace

CdiDevices read_cdi_spec(std::string_view text) {
  const json spec = parse(text);
  const std::string kind = text_or_empty(member(spec, "kind"));
  const json& listed = member(spec, "devices");
  if (kind.find('/') == std::string::npos || !listed.is_array()) {
    throw std::invalid_argument("a spec needs a 'kind' such as vendor.com/class and a list 'devices'");
  }
  CdiDevices devices;
  std::size_t edits = 0;
  for (const json& entry : listed) {
    const std::string name = text_or_empty(member(entry, "name"));
    if (name.empty()) throw std::invalid_argument("one of its devices has no name");
    const auto [position, is_new] = devices.try_emplace(kind + '=' + name);
    if (!is_new) throw std::invalid_argument("two of its devices have the name " + printable(name));
    CdiDevice& device = position->second;
    add_edits(member(entry, "containerEdits"), device);
    add_edits(member(spec, "containerEdits"), device);
    edits += 1 + device.paths.size() + device.env.size();
    if (edits > kMaxEdits)
      throw std::invalid_argument("more than " + std::to_string(kMaxEdits) + " devices, device nodes and variables");
  }
  return devices;
}

}  // namespace topolet::gpu
