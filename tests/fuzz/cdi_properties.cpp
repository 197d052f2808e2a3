#include "tests/fuzz/cdi_properties.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "plugins/gpu/cdi.hpp"
#include "plugins/gpu/yaml.hpp"

namespace topolet {
namespace {

using nlohmann::json;

/// CDI makes nothing of other scalars than texts and whole numbers. They become null, because in YAML they are texts.
template <class WriteText>
std::string scalar(const json& value, WriteText write_text) {
  if (value.is_string()) return write_text(value.get<std::string>());
  return value.is_number_integer() ? value.dump() : "null";
}

/// Double-quoted YAML with every character that is not plain ASCII escaped: YAML forbids some that JSON allows.
/// `text` is valid UTF-8.
std::string yaml_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first >= ' ' && first <= '~' && first != '"' && first != '\\') {
      quoted += text[i];
      continue;
    }
    std::uint32_t code_point = first;
    if (first >= 0xC0) {
      const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
      code_point = first & (0x3FU >> more);
      for (std::size_t n = 0; n < more; ++n) code_point = code_point << 6U | (static_cast<unsigned>(text[++i]) & 0x3FU);
    }
    char escape[16];
    std::snprintf(escape, sizeof(escape), "\\U%08X", code_point);
    quoted += escape;
  }
  return quoted + '"';
}

/// In the flow style, whose indentation means nothing. Keys are marked by '?' because libyaml allows others 1024 bytes.
std::string yaml_text(const json& value) {
  if (!value.is_structured()) return scalar(value, yaml_quoted);
  std::string text = value.is_array() ? "[" : "{";
  for (const auto& [key, item] : value.items()) {
    if (value.is_object()) text += "? " + yaml_quoted(key) + " : ";
    text += yaml_text(item) + ", ";
  }
  return text + (value.is_array() ? "]" : "}");
}

std::string json_text(const json& value) {
  if (!value.is_structured()) return scalar(value, [](const std::string& text) { return json(text).dump(); });
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ',';
    if (value.is_object()) text += json(key).dump() + ':';
    text += json_text(item);
  }
  return value.is_array() ? '[' + text + ']' : '{' + text + '}';
}

int depth_of(const json& value) {
  int deepest = 0;
  if (!value.is_structured()) return deepest;
  for (const json& item : value) deepest = std::max(deepest, depth_of(item));
  return deepest + 1;
}

struct ReadSpec {
  std::optional<gpu::CdiDevices> devices;
  std::string error;  ///< where there are none
};

ReadSpec read(const std::string& text) {
  try {
    return {gpu::read_cdi_spec(text), {}};
  } catch (const std::invalid_argument& error) {
    return {std::nullopt, error.what()};
  }
}

bool same(const ReadSpec& a, const ReadSpec& b) {
  if (a.devices.has_value() != b.devices.has_value()) return false;
  if (!a.devices) return a.error == b.error;
  return std::equal(a.devices->begin(), a.devices->end(), b.devices->begin(), b.devices->end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && x.second.paths == y.second.paths && x.second.env == y.second.env;
                    });
}

std::string error_violation(const ReadSpec& spec) {
  if (spec.devices) return {};
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  const bool right = !spec.error.empty() && std::all_of(spec.error.begin(), spec.error.end(), is_printable);
  return right ? "" : "an error that is empty or not printable: " + spec.error;
}

/// The document that the text holds, whether or not it is a spec; nothing if it is neither JSON nor YAML.
std::optional<json> document_of(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    json document = json::parse(text, nullptr, false);
    if (!document.is_discarded()) return document;
  }
  try {
    return gpu::read_yaml(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace

TextJudgement judge_cdi(const std::string& text) {
  const ReadSpec spec = read(text);
  TextJudgement result{.accepted = spec.devices.has_value(), .violation = error_violation(spec)};
  const auto document = document_of(text);
  if (!result.violation.empty()) return result;
  if (!document) {
    if (spec.devices) result.violation = "accepted, but neither JSON nor YAML";
    return result;
  }
  constexpr int kMaxDepth = 64;
  if (depth_of(*document) > kMaxDepth) return result;
  if (!same(read(json_text(*document)), spec)) result.violation = "written out as JSON, it is read as another spec";
  // The separator keeps a document in braces from being taken for JSON.
  if (!same(read("---\n" + yaml_text(*document)), spec))
    result.violation = "written out as YAML, it is read as another spec: " + yaml_text(*document);
  return result;
}

}  // namespace topolet
