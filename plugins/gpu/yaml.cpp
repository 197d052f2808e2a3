#include "plugins/gpu/yaml.hpp"

#include <yaml.h>

#include <algorithm>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace topolet::gpu {
namespace {

using nlohmann::json;

constexpr int kMaxYamlDepth = 64;
constexpr std::size_t kMaxValues = std::size_t{1} << 20;

[[noreturn]] void fail(std::size_t line, const std::string& problem) {
  throw std::invalid_argument("line " + std::to_string(line) + ": " + problem);
}

class Event {
 public:
  explicit Event(yaml_parser_t& parser) : is_valid_(yaml_parser_parse(&parser, &event_) != 0) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (is_valid_) yaml_event_delete(&event_);
  }

  bool is_valid() const { return is_valid_; }
  yaml_event_type_t type() const { return event_.type; }
  std::size_t line() const { return event_.start_mark.line + 1; }

  /// Returns true if a document ends without '...'.
  bool is_implicit_end() const { return event_.data.document_end.implicit != 0; }

  /// Returns the text of a scalar.
  std::string text() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }
  bool is_null() const {
    const std::string value = text();
    return event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (value.empty() || value == "~" || value == "null");
  }

  bool has_anchor_or_tag() const {
    switch (event_.type) {
      case YAML_SCALAR_EVENT:
        return event_.data.scalar.anchor != nullptr || event_.data.scalar.tag != nullptr;
      case YAML_SEQUENCE_START_EVENT:
        return event_.data.sequence_start.anchor != nullptr || event_.data.sequence_start.tag != nullptr;
      case YAML_MAPPING_START_EVENT:
        return event_.data.mapping_start.anchor != nullptr || event_.data.mapping_start.tag != nullptr;
      default:
        return event_.type == YAML_ALIAS_EVENT;
    }
  }

 private:
  yaml_event_t event_{};
  bool is_valid_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  json first_document() {
    advance();  // the stream's start
    if (advance()->type() != YAML_DOCUMENT_START_EVENT) return nullptr;
    json document = value(*advance(), 0);
    // Text that does not belong to the document shows where the next one should begin, unless '...' ends it.
    if (advance()->is_implicit_end()) advance();
    return document;
  }

 private:
  std::unique_ptr<Event> advance() {
    auto event = std::make_unique<Event>(parser_);
    if (!event->is_valid()) fail_to_parse();
    return event;
  }

  json value(const Event& event, int depth) {
    // An alias stands for what has been read before: a few lines of them can describe terabytes.
    if (event.has_anchor_or_tag()) fail(event.line(), "anchors, aliases and tags are not allowed in a CDI spec");
    if (depth > kMaxYamlDepth) fail(event.line(), "nested more than " + std::to_string(kMaxYamlDepth) + " levels deep");
    if (++values_ > kMaxValues) fail(event.line(), "more than " + std::to_string(kMaxValues) + " values");
    if (event.type() == YAML_SEQUENCE_START_EVENT) return sequence(depth);
    if (event.type() == YAML_MAPPING_START_EVENT) return mapping(depth);
    return event.is_null() ? json() : json(event.text());
  }

  json sequence(int depth) {
    json items = json::array();
    for (auto event = advance(); event->type() != YAML_SEQUENCE_END_EVENT; event = advance()) {
      items.push_back(value(*event, depth + 1));
    }
    return items;
  }

  json mapping(int depth) {
    json pairs = json::object();
    for (auto key = advance(); key->type() != YAML_MAPPING_END_EVENT; key = advance()) {
      if (key->type() != YAML_SCALAR_EVENT || key->has_anchor_or_tag()) {
        fail(key->line(), "a key must be plain or quoted text without anchors, aliases and tags");
      }
      pairs[key->text()] = value(*advance(), depth + 1);
    }
    return pairs;
  }

  [[noreturn]] void fail_to_parse() const {
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const std::string problem = parser_.problem == nullptr ? "not YAML" : parser_.problem;
    if (parser_.error != YAML_READER_ERROR) fail(parser_.problem_mark.line + 1, problem);
    // Bytes that are not UTF-8 have an offset, but no line.
    const std::string_view before = text_.substr(0, std::min(parser_.problem_offset, text_.size()));
    fail(static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1, problem);
  }

  const std::string_view text_;
  yaml_parser_t parser_{};
  std::size_t values_ = 0;
};

}  // namespace

json read_yaml(std::string_view text) { return Reader(text).first_document(); }

}  // namespace topolet::gpu
