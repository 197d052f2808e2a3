#include "cluster/api/yaml.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <nlohmann/json.hpp>

namespace topolet::api {
namespace {

using nlohmann::json;

/// Deeper ones, and those that contain themselves by an anchor, are refused.
constexpr int kMaxDepth = 50;
/// Anchors in anchors make a small text a large value.
constexpr int kMaxValues = 100'000;

struct Document {
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() {
    if (is_loaded) yaml_document_delete(&document);
    yaml_parser_delete(&parser);
  }

  yaml_parser_t parser{};
  yaml_document_t document{};
  bool is_loaded = false;
};

json scalar(const yaml_node_t& node) {
  const std::string text(reinterpret_cast<const char*>(node.data.scalar.value), node.data.scalar.length);
  const bool is_plain = node.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (is_plain && (text.empty() || text == "null" || text == "~")) return nullptr;
  return text;
}

class YamlReader {
 public:
  explicit YamlReader(yaml_document_t& document) : document_(document) {}

  /// Reads a node; returns false if it is too deep or too large.
  bool read(int number, int depth, json& value) {
    const yaml_node_t* node = yaml_document_get_node(&document_, number);
    if (node == nullptr || depth > kMaxDepth || ++values_ > kMaxValues) return false;
    if (node->type == YAML_SCALAR_NODE) {
      value = scalar(*node);
    } else if (node->type == YAML_SEQUENCE_NODE) {
      value = json::array();
      for (const auto* item = node->data.sequence.items.start; item < node->data.sequence.items.top; ++item) {
        if (!read(*item, depth + 1, value.emplace_back())) return false;
      }
    } else if (node->type == YAML_MAPPING_NODE) {
      value = json::object();
      for (const auto* pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; ++pair) {
        json key;
        if (!read(pair->key, depth + 1, key)) return false;
        if (!read(pair->value, depth + 1, value[key.is_string() ? key.get<std::string>() : key.dump()])) return false;
      }
    }
    return true;
  }

 private:
  yaml_document_t& document_;
  int values_ = 0;
};

}  // namespace

Result<json> parse_yaml(const std::string& text) {
  Document document;
  if (yaml_parser_initialize(&document.parser) == 0) return Error{Code::kResourceExhausted, "there is no memory"};
  yaml_parser_set_input_string(&document.parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  document.is_loaded = yaml_parser_load(&document.parser, &document.document) != 0;
  if (!document.is_loaded) {
    return Error{Code::kInvalidArgument, fmt::format("line {} is not YAML: {}", document.parser.problem_mark.line + 1,
                                                     document.parser.problem)};
  }
  json value;
  if (yaml_document_get_root_node(&document.document) == nullptr) return value;
  if (!YamlReader(document.document).read(1, 0, value))
    return Error{Code::kInvalidArgument, "it is too deep or too large"};
  return value;
}

}  // namespace topolet::api
